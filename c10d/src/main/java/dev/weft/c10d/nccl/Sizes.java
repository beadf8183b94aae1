package dev.weft.c10d.nccl;

import dev.weft.tensor.StridedTensor;
import java.util.Arrays;
import java.util.List;

/** Sizes of tensors. Stateless. */
final class Sizes {
  private Sizes() {}

  /** Whether all have one number of elements; all ranks see the same lists of sizes. */
  static boolean areEqual(List<StridedTensor> tensors) {
    long first = tensors.get(0).numel();
    for (StridedTensor t : tensors) {
      if (t.numel() != first || !Arrays.equals(t.shape(), tensors.get(0).shape())) {
        return t.numel() == first && sameNumel(tensors, first);
      }
    }
    return true;
  }

  private static boolean sameNumel(List<StridedTensor> tensors, long numel) {
    return tensors.stream().allMatch(t -> t.numel() == numel);
  }

  /** The shape of n blocks one after the other. */
  static long[] times(int n, long[] shape) {
    long[] out = new long[shape.length + 1];
    out[0] = n;
    System.arraycopy(shape, 0, out, 1, shape.length);
    return out;
  }

  /** Bytes of a row: all dimensions but the first. */
  static long rowBytes(StridedTensor t) {
    long n = t.dtype().byteSize();
    for (int d = 1; d < t.ndim(); d++) {
      n *= t.shape()[d];
    }
    return n;
  }
}
