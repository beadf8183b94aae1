package dev.weft.tensor.cuda;

import dev.weft.tensor.StridedTensor;
import java.util.Arrays;

/**
 * The common iteration space of several tensors: sizes and each tensor's strides, innermost
 * dimension first, with dimensions merged that all tensors step through as one. Kernels that walk
 * strided data get it by value: at most {@link #MAX} dimensions remain.
 */
final class Geometry {
  /** The dimensions that kernels have room for. */
  static final int MAX = 8;

  final int ndim;
  final long[] sizes = new long[MAX];
  final long[][] strides;
  final long numel;

  private Geometry(int ndim, long numel, int tensors) {
    this.ndim = ndim;
    this.numel = numel;
    this.strides = new long[tensors][MAX];
  }

  /**
   * The space of a shape, over which tensors are broadcast.
   *
   * @param shape of the result
   * @param tensors whose shapes are broadcastable to it
   */
  static Geometry of(long[] shape, StridedTensor... tensors) {
    long[][] all = new long[tensors.length][];
    for (int i = 0; i < tensors.length; i++) {
      all[i] = broadcast(tensors[i], shape);
    }
    return of(shape, all);
  }

  /** The space of a shape, with each tensor's strides for its dimensions, outermost first. */
  static Geometry of(long[] shape, long[][] all) {
    int tensors = all.length;
    int n = shape.length;
    long[] sizes = new long[Math.max(1, n)];
    long[][] strides = new long[tensors][Math.max(1, n)];
    long numel = 1;
    int used = 0;
    for (int d = n - 1; d >= 0; d--) {
      numel *= shape[d];
      if (shape[d] == 1) {
        continue;
      }
      boolean merge = used > 0;
      for (int i = 0; i < tensors && merge; i++) {
        merge = all[i][d] == strides[i][used - 1] * sizes[used - 1];
      }
      if (merge) {
        sizes[used - 1] *= shape[d];
      } else {
        sizes[used] = shape[d];
        for (int i = 0; i < tensors; i++) {
          strides[i][used] = all[i][d];
        }
        used++;
      }
    }
    if (used > MAX) {
      throw new UnsupportedOperationException(
          "CUDA kernels walk at most "
              + MAX
              + " dimensions that cannot be merged; got shape "
              + Arrays.toString(shape)
              + "; make the tensor contiguous first");
    }
    Geometry g = new Geometry(used, numel, tensors);
    System.arraycopy(sizes, 0, g.sizes, 0, used);
    for (int i = 0; i < tensors; i++) {
      System.arraycopy(strides[i], 0, g.strides[i], 0, used);
    }
    return g;
  }

  private static long[] broadcast(StridedTensor t, long[] to) {
    int lead = to.length - t.ndim();
    long[] out = new long[to.length];
    for (int i = lead; i < to.length; i++) {
      out[i] = t.shape()[i - lead] == 1 && to[i] != 1 ? 0 : t.strides()[i - lead];
    }
    return out;
  }

  /** True when a tensor's elements lie one after the other in this order. */
  boolean isDense(int tensor) {
    return ndim == 0 || (ndim == 1 && strides[tensor][0] == 1);
  }

  /** True when that holds for all. */
  boolean allDense() {
    for (int i = 0; i < strides.length; i++) {
      if (!isDense(i)) {
        return false;
      }
    }
    return true;
  }

  /** Adds a tensor's strides to a launch: {@code long[MAX]}. */
  void addStrides(Launch launch, int tensor) {
    launch.int64s(strides[tensor], ndim, MAX);
  }

  /** Adds the sizes to a launch: {@code long[MAX]}. */
  void addSizes(Launch launch) {
    launch.int64s(sizes, ndim, MAX);
  }
}
