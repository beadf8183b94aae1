package dev.weft.c10d;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.cpu.Elements;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The sum of sparse tensors over ranks: coordinates and values are gathered, and added in order.
 */
final class SparseReduction {
  private static final String NAME = "all_reduce_sparse";

  private SparseReduction() {}

  static SparseCoo sum(ProcessGroup g, SparseCoo mine, ReduceOp op, CollectiveOptions options) {
    if (op.kind() != ReduceOp.Kind.SUM) {
      throw new IllegalArgumentException(
          NAME + ": reduce op is " + op + "; expected sum, the only one for sparse tensors");
    }
    if (!g.isMember()) {
      NonMembers.warn(g, NAME);
      return mine;
    }
    CollectiveOptions sync = new CollectiveOptions(false, options.timeout());
    SparseCoo own = mine.coalesce();
    long[] counts = counts(g, own, sync);
    int n = g.size();
    List<Tensor> indices = new ArrayList<>(n);
    List<Tensor> values = new ArrayList<>(n);
    for (int r = 0; r < n; r++) {
      long[] valueShape = own.values().shape().clone();
      valueShape[0] = counts[r];
      indices.add(Tensors.empty(DType.INT64, own.sparseDims(), counts[r]));
      values.add(Tensors.empty(own.dtype(), valueShape));
    }
    Work gatheredIndices = g.allGather(indices, own.indices(), sync);
    Work gatheredValues = g.allGather(values, own.values(), sync);
    gatheredIndices.await();
    gatheredValues.await();
    SparseCoo.Summing sum = new SparseCoo.Summing(own);
    for (int r = 0; r < n; r++) {
      sum.add(indices.get(r).toLongArray(), values.get(r));
    }
    return sum.result();
  }

  /** Everyone's number of entries; everyone's shape must be the same. */
  private static long[] counts(ProcessGroup g, SparseCoo own, CollectiveOptions options) {
    long[] shape = own.shape();
    int width = 2 + shape.length;
    // Ranks that differ in the number of dimensions are told so by the collective itself, as are
    // those that differ in dtype when the values are gathered.
    long[] row = Arrays.copyOf(new long[] {own.entries(), own.sparseDims()}, width);
    System.arraycopy(shape, 0, row, 2, shape.length);
    StridedTensor in = Tensors.empty(DType.INT64, width);
    for (int i = 0; i < width; i++) {
      Elements.putLong(DType.INT64, in.dataAddress() + 8L * i, row[i]);
    }
    StridedTensor out = Tensors.empty(DType.INT64, g.size(), width);
    g.allGatherIntoTensor(out, in, options).await();
    long[] all = out.toLongArray();
    long[] counts = new long[g.size()];
    for (int r = 0; r < counts.length; r++) {
      long[] theirs = Arrays.copyOfRange(all, r * width, (r + 1) * width);
      counts[r] = theirs[0];
      long[] expected = row.clone();
      expected[0] = theirs[0];
      if (!Arrays.equals(theirs, expected)) {
        throw new MismatchException(mismatch(g, all, width));
      }
    }
    return counts;
  }

  private static String mismatch(ProcessGroup g, long[] all, int width) {
    List<String> each = new ArrayList<>();
    for (int r = 0; r < g.size(); r++) {
      long[] row = Arrays.copyOfRange(all, r * width, (r + 1) * width);
      each.add(
          "rank "
              + g.globalRank(r)
              + " has shape "
              + Arrays.toString(Arrays.copyOfRange(row, 2, width))
              + " with "
              + row[1]
              + " sparse dimensions");
    }
    return "the ranks of group "
        + g.describe()
        + " do not agree in "
        + NAME
        + ": "
        + String.join("; ", each);
  }
}
