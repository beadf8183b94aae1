package dev.weft.dtensor;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.cpu.Elements;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Extrema;
import dev.weft.tensor.op.Indexing;
import dev.weft.tensor.op.Views;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * Position of the largest or smallest element. Along a cut dimension each rank finds its own best,
 * and the candidates (value and global position) are gathered and compared; equal ones count by the
 * lowest position, NaN beats everything.
 */
final class ArgExtremumRule implements Sharding.Rule {
  private static final long NONE = Long.MAX_VALUE;

  private final boolean max;

  ArgExtremumRule(boolean max) {
    this.max = max;
  }

  @Override
  public boolean followsInputs() {
    return true;
  }

  @Override
  public List<Sharding.Row> rows(Sharding.Call call) {
    boolean[] gone = ReductionRules.reduced(call);
    List<Sharding.Row> rows = new ArrayList<>(ReductionRules.reduce(call, null, Set.of()));
    for (Placement p : Set.copyOf(call.inputs().get(0).placements())) {
      // Two small collectives; gathering the input would be one, of many more bytes.
      if (p instanceof Shard s && gone[s.dim()]) {
        rows.add(
            Sharding.Row.of(Replicate.INSTANCE, p)
                .communicating(0, 2 * ReductionRules.resultBytes(call)));
      }
    }
    return rows;
  }

  @Override
  public Sharding.LocalCall localCall(Sharding.Call call) {
    return this::run;
  }

  private Tensor[] run(
      Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs, Tensor[] local) {
    DTensorSpec spec = inputs.get(0);
    boolean[] gone = ReductionRules.reduced(call);
    List<Integer> along = new ArrayList<>();
    for (int m = 0; m < spec.mesh().ndim(); m++) {
      int d = spec.placements().get(m).shardDim();
      if (d >= 0 && gone[d] && spec.mesh().size(m) > 1) {
        along.add(m);
      }
    }
    if (along.isEmpty()) {
      return Dispatcher.callAll(call.op(), call.attrs(), local);
    }
    StridedTensor[] best = candidates(call, spec, local[0], outputs.get(0).localShape());
    for (int m : along) {
      best = exchange(spec.mesh().getGroup(m), best);
    }
    return new Tensor[] {best[1]};
  }

  /** Each result's best value on this rank and its global position. */
  private StridedTensor[] candidates(
      Sharding.Call call, DTensorSpec spec, Tensor local, long[] shape) {
    StridedTensor values = Tensors.empty(local.dtype(), local.device(), shape);
    StridedTensor positions = Tensors.empty(DType.INT64, local.device(), shape);
    int[] dims = call.attrs().intsAt(0);
    boolean all = dims.length == call.ndim(0);
    long count = values.numel();
    if (local.numel() == 0) {
      for (long i = 0; i < count; i++) {
        Elements.putDouble(local.dtype(), address(values, i), 0);
        Elements.putLong(DType.INT64, address(positions, i), NONE);
      }
      return new StridedTensor[] {values, positions};
    }
    Tensor index =
        (all
            ? (max ? Extrema.argmax(local) : Extrema.argmin(local))
            : (max ? Extrema.argmax(local, dims[0], true) : Extrema.argmin(local, dims[0], true)));
    Tensor value =
        all
            ? Indexing.gather(Views.reshape(local, -1), 0, Views.reshape(index, 1))
            : Indexing.gather(local, dims[0], index);
    dev.weft.tensor.Regions.copy((StridedTensor) Views.reshape(value, shape), values);
    long[] own = index.toLongArray();
    long[] offset = spec.globalOffset();
    for (int i = 0; i < own.length; i++) {
      long global =
          all ? ravel(own[i], local.shape(), offset, spec.shape()) : own[i] + offset[dims[0]];
      Elements.putLong(DType.INT64, address(positions, i), global);
    }
    return new StridedTensor[] {values, positions};
  }

  /** A position in the part as a position in the whole. */
  private static long ravel(long position, long[] part, long[] offset, long[] whole) {
    long rest = position;
    long global = 0;
    long step = 1;
    for (int d = part.length - 1; d >= 0; d--) {
      global += (offset[d] + rest % part[d]) * step;
      rest /= part[d];
      step *= whole[d];
    }
    return global;
  }

  private static long address(StridedTensor t, long i) {
    return t.dataAddress() + i * t.dtype().byteSize();
  }

  /** The best of a group's candidates, on each of its ranks. */
  private StridedTensor[] exchange(ProcessGroup group, StridedTensor[] mine) {
    long count = mine[0].numel();
    StridedTensor values = gather(group, mine[0]);
    StridedTensor positions = gather(group, mine[1]);
    StridedTensor bestValue = Tensors.empty(mine[0].dtype(), mine[0].device(), mine[0].shape());
    StridedTensor best = Tensors.empty(DType.INT64, mine[0].device(), mine[0].shape());
    for (long i = 0; i < count; i++) {
      long chosen = i;
      for (int r = 1; r < group.size(); r++) {
        long other = r * count + i;
        if (isBetter(values, positions, other, chosen)) {
          chosen = other;
        }
      }
      copy(values, chosen, bestValue, i);
      copy(positions, chosen, best, i);
    }
    return new StridedTensor[] {bestValue, best};
  }

  private static void copy(StridedTensor from, long i, StridedTensor to, long j) {
    DType dtype = from.dtype();
    if (dtype.isFloatingPoint()) {
      Elements.putDouble(dtype, address(to, j), Elements.getDouble(dtype, address(from, i)));
    } else {
      Elements.putLong(dtype, address(to, j), Elements.getLong(dtype, address(from, i)));
    }
  }

  private boolean isBetter(StridedTensor values, StridedTensor positions, long a, long b) {
    long pa = Elements.getLong(DType.INT64, address(positions, a));
    long pb = Elements.getLong(DType.INT64, address(positions, b));
    if (pa == NONE || pb == NONE) {
      return pb == NONE && pa != NONE;
    }
    int order;
    if (values.dtype().isFloatingPoint()) {
      double x = Elements.getDouble(values.dtype(), address(values, a));
      double y = Elements.getDouble(values.dtype(), address(values, b));
      boolean nx = Double.isNaN(x);
      boolean ny = Double.isNaN(y);
      order = nx || ny ? Boolean.compare(nx, ny) : x == y ? 0 : (x > y) == max ? 1 : -1;
    } else {
      int plain =
          Long.compare(
              Elements.getLong(values.dtype(), address(values, a)),
              Elements.getLong(values.dtype(), address(values, b)));
      order = max ? plain : -plain;
    }
    return order > 0 || (order == 0 && pa < pb);
  }

  private static StridedTensor gather(ProcessGroup group, StridedTensor mine) {
    StridedTensor all = Tensors.empty(mine.dtype(), mine.device(), mine.numel() * group.size());
    group
        .allGatherIntoTensor(
            all, dev.weft.tensor.Regions.reshaped(mine, mine.numel()), CollectiveOptions.ASYNC)
        .await();
    return all;
  }
}
