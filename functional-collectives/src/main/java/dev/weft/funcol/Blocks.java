package dev.weft.funcol;

import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;

/** Copies between a tensor and its blocks along a dimension, one after the other in memory. */
final class Blocks {
  private Blocks() {}

  /** True where blocks along {@code dim} lie one after the other in a contiguous tensor. */
  static boolean isOuter(long[] shape, int dim) {
    for (int d = 0; d < dim; d++) {
      if (shape[d] != 1) {
        return false;
      }
    }
    return true;
  }

  /** Cuts {@code whole} along {@code dim} into n equal parts and stores them as blocks. */
  static void pack(StridedTensor whole, StridedTensor blocks, int dim, int n) {
    long[] part = whole.shape().clone();
    part[dim] /= n;
    for (int k = 0; k < n; k++) {
      Regions.copy(
          Regions.narrow(whole, dim, k * part[dim], part[dim]), Regions.block(blocks, part, k));
    }
  }

  /** The inverse of {@link #pack}. */
  static void unpack(StridedTensor blocks, StridedTensor whole, int dim, int n) {
    long[] part = whole.shape().clone();
    part[dim] /= n;
    for (int k = 0; k < n; k++) {
      Regions.copy(
          Regions.block(blocks, part, k), Regions.narrow(whole, dim, k * part[dim], part[dim]));
    }
  }
}
