package dev.weft.tensor.cpu;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.memory.Memory;
import dev.weft.tensor.op.Attrs;

/** Reads and additions at computed positions. Indices are checked as they are used. */
public final class IndexKernels {
  private IndexKernels() {}

  private static void check(String op, long index, long size) {
    if (index < 0 || index >= size) {
      throw new IndexOutOfBoundsException(
          op + ": index " + index + " is out of range; expected [0, " + (size - 1) + "]");
    }
  }

  /** Rows of a table: out[..., :] = table[indices[...], :]. */
  public static void embedding(StridedTensor table, StridedTensor indices, StridedTensor out) {
    long n = indices.numel();
    if (n == 0) {
      return;
    }
    try (Temporaries temporaries = new Temporaries()) {
      StridedTensor t =
          table.strides()[1] == 1 || table.size(1) == 1
              ? table
              : temporaries.packed(table, table.dtype());
      int width = t.dtype().byteSize();
      long row = t.size(1) * width;
      long from = t.dataAddress();
      long to = out.dataAddress();
      Cursor cursor = new Cursor(indices);
      long[] buffer = Scratch.get().longs(0, Scratch.CHUNK);
      for (long done = 0; done < n; done += Scratch.CHUNK) {
        int size = (int) Math.min(Scratch.CHUNK, n - done);
        cursor.read(buffer, 0, size);
        for (int i = 0; i < size; i++) {
          check("embedding", buffer[i], t.size(0));
          Memory.copy(from + buffer[i] * t.strides()[0] * width, to + (done + i) * row, row);
        }
      }
    }
  }

  /** The sum of the gradient's rows at their table positions; {@code padding} gets none. */
  public static void embeddingBackward(
      StridedTensor g, StridedTensor indices, StridedTensor out, long padding) {
    FillKernels.fill(out, 0);
    if (g.numel() == 0) {
      return;
    }
    try (Temporaries temporaries = new Temporaries()) {
      DType wide = out.dtype() == DType.FLOAT64 ? DType.FLOAT64 : DType.FLOAT32;
      StridedTensor sums = out;
      if (out.dtype() != wide) {
        sums = temporaries.empty(wide, out.shape());
        FillKernels.fill(sums, 0);
      }
      int n = Math.toIntExact(out.size(1));
      long rows = indices.numel();
      Cursor cursor = new Cursor(indices);
      Cursor gradients = new Cursor(g);
      Scratch scratch = Scratch.get();
      long[] index = scratch.longs(0, 1);
      float[] f = scratch.floats(0, n);
      float[] fSum = scratch.floats(1, n);
      double[] d = scratch.doubles(0, n);
      double[] dSum = scratch.doubles(1, n);
      long base = sums.dataAddress();
      for (long r = 0; r < rows; r++) {
        cursor.read(index, 0, 1);
        check("embedding_backward", index[0], out.size(0));
        boolean skip = index[0] == padding;
        long at = base + index[0] * n * wide.byteSize();
        if (wide == DType.FLOAT32) {
          gradients.read(f, 0, n);
          if (!skip) {
            Memory.get(at, fSum, 0, n);
            for (int i = 0; i < n; i++) {
              fSum[i] += f[i];
            }
            Memory.put(at, fSum, 0, n);
          }
        } else {
          gradients.read(d, 0, n);
          if (!skip) {
            Memory.get(at, dSum, 0, n);
            for (int i = 0; i < n; i++) {
              dSum[i] += d[i];
            }
            Memory.put(at, dSum, 0, n);
          }
        }
      }
      if (sums != out) {
        CopyKernels.copy(sums, out);
      }
    }
  }

  /** A slice of one position, without its dimension. */
  static StridedTensor select(StridedTensor t, int dim, long index) {
    int[] rest = Layouts.others(new int[] {dim}, t.ndim());
    return t.withLayout(
        Layouts.pick(t.shape(), rest),
        Layouts.pick(t.strides(), rest),
        t.offset() + index * t.strides()[dim]);
  }

  private static long[] indices(StridedTensor index) {
    int n = Math.toIntExact(index.numel());
    long[] out = new long[n];
    if (n > 0) {
      new Cursor(index).read(out, 0, n);
    }
    return out;
  }

  /** Slices along a dimension by a vector of positions. */
  public static void indexSelect(
      StridedTensor in, StridedTensor index, StridedTensor out, int dim) {
    long[] at = indices(index);
    for (int i = 0; i < at.length; i++) {
      check("index_select", at[i], in.shape()[dim]);
      CopyKernels.copy(select(in, dim, at[i]), select(out, dim, i));
    }
  }

  /** The sum of slices at their positions along a dimension. */
  public static void indexSelectBackward(
      StridedTensor g, StridedTensor index, StridedTensor out, int dim) {
    FillKernels.fill(out, 0);
    long[] at = indices(index);
    for (int i = 0; i < at.length; i++) {
      check("index_select_backward", at[i], out.shape()[dim]);
      StridedTensor target = select(out, dim, at[i]);
      Elementwise.run(
          ArithmeticLoops.ADD,
          out.dtype(),
          new StridedTensor[] {target, select(g, dim, i)},
          target,
          Attrs.NONE);
    }
  }

  /** What is done at a position of the indexed tensor and one of the other. */
  private interface Visit {
    void at(long indexed, long other);
  }

  /** Walks {@code index}: addresses in {@code indexed} (by value along dim) and {@code other}. */
  private static void walk(
      String op,
      StridedTensor index,
      StridedTensor indexed,
      StridedTensor other,
      int dim,
      Visit visit) {
    long n = index.numel();
    if (n == 0) {
      return;
    }
    int ndim = index.ndim();
    long size = ndim == 0 ? 1 : indexed.shape()[dim];
    long dimStep = ndim == 0 ? 0 : indexed.strides()[dim] * indexed.dtype().byteSize();
    long[] position = new long[ndim];
    long a = indexed.dataAddress();
    long b = other.dataAddress();
    Cursor cursor = new Cursor(index);
    long[] value = Scratch.get().longs(0, 1);
    for (long k = 0; k < n; k++) {
      cursor.read(value, 0, 1);
      check(op, value[0], size);
      visit.at(a + value[0] * dimStep, b);
      for (int d = ndim - 1; d >= 0; d--) {
        long aStep = d == dim ? 0 : indexed.strides()[d] * indexed.dtype().byteSize();
        long bStep = other.strides()[d] * other.dtype().byteSize();
        position[d]++;
        a += aStep;
        b += bStep;
        if (position[d] < index.shape()[d]) {
          break;
        }
        a -= position[d] * aStep;
        b -= position[d] * bStep;
        position[d] = 0;
      }
    }
  }

  /** out[p] = in[p with its coordinate along dim replaced by index[p]]. */
  public static void gather(StridedTensor in, StridedTensor index, StridedTensor out, int dim) {
    int width = in.dtype().byteSize();
    walk(
        "gather",
        index,
        in,
        out,
        dim,
        (from, to) -> {
          switch (width) {
            case 8 -> Memory.putLong(to, Memory.getLong(from));
            case 4 -> Memory.putInt(to, Memory.getInt(from));
            case 2 -> Memory.putShort(to, Memory.getShort(from));
            default -> Memory.putByte(to, Memory.getByte(from));
          }
        });
  }

  /** out[p with its coordinate along dim replaced by index[p]] += source[p]. */
  public static void scatterAdd(
      String op, StridedTensor out, StridedTensor index, StridedTensor source, int dim) {
    DType t = out.dtype();
    boolean exact = Compute.of(t) == Compute.LONG;
    walk(
        op,
        index,
        out,
        source,
        dim,
        (to, from) -> {
          if (exact) {
            Elements.putLong(
                t, to, Elements.getLong(t, to) + Elements.getLong(source.dtype(), from));
          } else {
            Elements.putDouble(
                t, to, Elements.getDouble(t, to) + Elements.getDouble(source.dtype(), from));
          }
        });
  }

  /** Copies a matrix (or a batch) and clears what is above (or below) a diagonal. */
  public static void triangle(StridedTensor in, StridedTensor out, long diagonal, boolean lower) {
    CopyKernels.copy(in, out);
    if (out.numel() == 0) {
      return;
    }
    long rows = out.size(-2);
    long columns = out.size(-1);
    int width = out.dtype().byteSize();
    long count = out.numel() / columns;
    for (long r = 0; r < count; r++) {
      long i = r % rows;
      long row = out.dataAddress() + r * columns * width;
      // Lower: columns j <= i + diagonal stay; upper: j >= i + diagonal.
      long from = lower ? Math.min(columns, Math.max(0, i + diagonal + 1)) : 0;
      long to = lower ? columns : Math.min(columns, Math.max(0, i + diagonal));
      if (to > from) {
        Memory.fill(row + from * width, (to - from) * width, (byte) 0);
      }
    }
  }
}
