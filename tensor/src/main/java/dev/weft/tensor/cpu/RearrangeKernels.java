package dev.weft.tensor.cpu;

import dev.weft.tensor.StridedTensor;

/** Elements moved along dimensions. */
public final class RearrangeKernels {
  private RearrangeKernels() {}

  /** The order of positions reversed along some dimensions. */
  public static void flip(StridedTensor in, StridedTensor out, int[] dims, int next) {
    if (next == dims.length) {
      CopyKernels.copy(in, out);
      return;
    }
    int dim = dims[next];
    long n = in.shape()[dim];
    for (long i = 0; i < n; i++) {
      flip(
          JoinKernels.slice(in, dim, i, 1, 1),
          JoinKernels.slice(out, dim, n - 1 - i, 1, 1),
          dims,
          next + 1);
    }
  }

  /** Positions moved along dimensions; what leaves at the end comes in at the start. */
  public static void roll(
      StridedTensor in, StridedTensor out, long[] shifts, int[] dims, int next) {
    if (next == dims.length) {
      CopyKernels.copy(in, out);
      return;
    }
    int dim = dims[next];
    long n = in.shape()[dim];
    long shift = n == 0 ? 0 : Math.floorMod(shifts[next], n);
    roll(
        JoinKernels.slice(in, dim, 0, n - shift, 1),
        JoinKernels.slice(out, dim, shift, n - shift, 1),
        shifts,
        dims,
        next + 1);
    if (shift > 0) {
      roll(
          JoinKernels.slice(in, dim, n - shift, shift, 1),
          JoinKernels.slice(out, dim, 0, shift, 1),
          shifts,
          dims,
          next + 1);
    }
  }

  /** Copies side by side; {@code in} has as many dimensions as {@code out}. */
  public static void repeat(StridedTensor in, StridedTensor out, int dim) {
    if (dim == out.ndim()) {
      CopyKernels.copy(in, out);
      return;
    }
    long n = in.shape()[dim];
    for (long at = 0; n > 0 && at < out.shape()[dim]; at += n) {
      repeat(in, JoinKernels.slice(out, dim, at, n, 1), dim + 1);
    }
  }
}
