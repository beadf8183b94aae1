package dev.weft.tensor.cpu;

import dev.weft.tensor.StridedTensor;

/** Copies of tensors into parts of a larger one. */
public final class JoinKernels {
  private JoinKernels() {}

  /** A range of a dimension, every {@code step}-th position of it. */
  static StridedTensor slice(StridedTensor t, int dim, long start, long size, long step) {
    long[] shape = t.shape().clone();
    long[] strides = t.strides().clone();
    shape[dim] = size;
    long offset = t.offset() + (size == 0 ? 0 : start * strides[dim]);
    strides[dim] *= step;
    return t.withLayout(shape, strides, offset);
  }

  /** One after the other along a dimension; empty vectors are skipped. */
  public static void cat(StridedTensor[] in, StridedTensor out, int dim) {
    long at = 0;
    for (StridedTensor t : in) {
      if (t.numel() > 0) {
        CopyKernels.copy(t, slice(out, dim, at, t.shape()[dim], 1));
        at += t.shape()[dim];
      }
    }
  }

  /** One after the other along a new dimension. */
  public static void stack(StridedTensor[] in, StridedTensor out, int dim) {
    for (int i = 0; i < in.length; i++) {
      CopyKernels.copy(in[i], IndexKernels.select(out, dim, i));
    }
  }

  /** Zeros with the gradient at the slice's positions. */
  public static void sliceBackward(
      StridedTensor g, StridedTensor out, int dim, long start, long step) {
    FillKernels.fill(out, 0);
    if (g.numel() > 0) {
      CopyKernels.copy(g, slice(out, dim, start, g.shape()[dim], step));
    }
  }
}
