package dev.weft.tensor.cuda;

import dev.weft.tensor.StridedTensor;
import java.util.Arrays;

/**
 * Elements copied to other places on one device: joins, slices, reversals, rotations. Shapes have
 * been checked by the operators. Any thread; in the order of the device's current stream.
 */
public final class CudaMoves {
  private CudaMoves() {}

  /** Refuses a target in which several elements lie at one address. */
  public static void requireNoOverlap(StridedTensor out) {
    for (int d = 0; d < out.ndim(); d++) {
      if (out.strides()[d] == 0 && out.shape()[d] > 1) {
        throw new IllegalArgumentException(
            "an expanded tensor (shape "
                + Arrays.toString(out.shape())
                + ", strides "
                + Arrays.toString(out.strides())
                + ") cannot be written: several elements share memory; clone it first");
      }
    }
  }

  /** Copies in row-major order, converting the dtype; {@code from} broadcasts to the target. */
  public static void copy(StridedTensor from, StridedTensor to) {
    if (to.numel() == 0) {
      return;
    }
    requireNoOverlap(to);
    if (from.storage() == to.storage()) {
      try (CudaTemporaries temporaries = new CudaTemporaries(to.device())) {
        move(temporaries.packed(from, from.dtype()), to);
      }
    } else {
      move(from, to);
    }
  }

  private static void move(StridedTensor from, StridedTensor to) {
    if (Arrays.equals(from.shape(), to.shape())) {
      CudaCopies.copy(from, to);
    } else {
      CopyKernel.run(from, to);
    }
  }

  /** A range of a dimension, every {@code step}-th position of it. */
  static StridedTensor slice(StridedTensor t, int dim, long start, long size, long step) {
    long[] shape = t.shape().clone();
    long[] strides = t.strides().clone();
    shape[dim] = size;
    long offset = t.offset() + (size == 0 ? 0 : start * strides[dim]);
    strides[dim] *= step;
    return t.withLayout(shape, strides, offset);
  }

  private static StridedTensor select(StridedTensor t, int dim, long index) {
    return t.withLayout(
        without(t.shape(), dim), without(t.strides(), dim), t.offset() + index * t.strides()[dim]);
  }

  private static long[] without(long[] values, int at) {
    long[] out = new long[values.length - 1];
    System.arraycopy(values, 0, out, 0, at);
    System.arraycopy(values, at + 1, out, at, out.length - at);
    return out;
  }

  /** One after the other along a dimension; empty vectors are skipped. */
  public static void cat(StridedTensor[] in, StridedTensor out, int dim) {
    long at = 0;
    for (StridedTensor t : in) {
      if (t.numel() > 0) {
        CudaCopies.copy(t, slice(out, dim, at, t.shape()[dim], 1));
        at += t.shape()[dim];
      }
    }
  }

  /** One after the other along a new dimension. */
  public static void stack(StridedTensor[] in, StridedTensor out, int dim) {
    for (int i = 0; i < in.length; i++) {
      CudaCopies.copy(in[i], select(out, dim, i));
    }
  }

  /** Zeros with the gradient at the slice's positions. */
  public static void sliceBackward(
      StridedTensor g, StridedTensor out, int dim, long start, long step) {
    if (g.numel() < out.numel()) {
      CudaFills.fill(out, 0);
    }
    if (g.numel() > 0) {
      CudaCopies.copy(g, slice(out, dim, start, g.shape()[dim], step));
    }
  }

  /** The order of positions reversed along some dimensions. */
  public static void flip(StridedTensor in, StridedTensor out, int[] dims) {
    if (out.numel() == 0) {
      return;
    }
    long[] strides = in.strides().clone();
    long last = 0;
    for (int d : dims) {
      last += (in.shape()[d] - 1) * strides[d];
      strides[d] = -strides[d];
    }
    Geometry g = Geometry.of(out.shape(), new long[][] {out.strides(), strides});
    CopyKernel.strided(
        CopyKernel.module(in.dtype(), out.dtype()),
        g,
        out.device().index(),
        in.dataAddress() + last * in.dtype().byteSize(),
        out.dataAddress());
  }

  /** Positions moved along dimensions; what leaves at the end comes in at the start. */
  public static void roll(StridedTensor in, StridedTensor out, long[] shifts, int[] dims) {
    roll(in, out, shifts, dims, 0);
  }

  private static void roll(
      StridedTensor in, StridedTensor out, long[] shifts, int[] dims, int next) {
    if (next == dims.length) {
      CudaCopies.copy(in, out);
      return;
    }
    int dim = dims[next];
    long n = in.shape()[dim];
    long shift = n == 0 ? 0 : Math.floorMod(shifts[next], n);
    roll(
        slice(in, dim, 0, n - shift, 1),
        slice(out, dim, shift, n - shift, 1),
        shifts,
        dims,
        next + 1);
    if (shift > 0) {
      roll(
          slice(in, dim, n - shift, shift, 1),
          slice(out, dim, 0, shift, 1),
          shifts,
          dims,
          next + 1);
    }
  }

  /** Copies side by side; {@code in} has as many dimensions as {@code out}. */
  public static void repeat(StridedTensor in, StridedTensor out) {
    if (out.numel() > 0) {
      repeat(in, out, 0);
    }
  }

  private static void repeat(StridedTensor in, StridedTensor out, int dim) {
    int rest = out.ndim() - dim;
    if (dim + 2 * rest > Geometry.MAX && rest > 0) {
      long n = in.shape()[dim];
      for (long at = 0; at < out.shape()[dim]; at += n) {
        repeat(in, slice(out, dim, at, n, 1), dim + 1);
      }
      return;
    }
    // Each dimension that is left as (copies, size): the copies are read with stride 0. Those
    // before have equal sizes by now.
    long[] shape = new long[dim + 2 * rest];
    long[] from = new long[shape.length];
    long[] to = new long[shape.length];
    System.arraycopy(in.shape(), 0, shape, 0, dim);
    System.arraycopy(in.strides(), 0, from, 0, dim);
    System.arraycopy(out.strides(), 0, to, 0, dim);
    for (int i = 0; i < rest; i++) {
      int d = dim + i;
      int k = dim + 2 * i;
      shape[k] = out.shape()[d] / in.shape()[d];
      to[k] = in.shape()[d] * out.strides()[d];
      shape[k + 1] = in.shape()[d];
      from[k + 1] = in.strides()[d];
      to[k + 1] = out.strides()[d];
    }
    CopyKernel.strided(
        CopyKernel.module(in.dtype(), out.dtype()),
        Geometry.of(shape, new long[][] {to, from}),
        out.device().index(),
        in.dataAddress(),
        out.dataAddress());
  }
}
