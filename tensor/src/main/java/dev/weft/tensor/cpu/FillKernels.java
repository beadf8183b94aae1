package dev.weft.tensor.cpu;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;

/** Constant values. */
public final class FillKernels {
  private FillKernels() {}

  /** Sets every element; any strides. */
  public static void fill(StridedTensor t, Number value) {
    DType dtype = t.dtype();
    long base = t.dataAddress();
    long n = t.numel();
    boolean exact = value instanceof Long || value instanceof Integer;
    for (long i = 0; i < n; i++) {
      long at = base + HostData.position(t, i) * dtype.byteSize();
      if (exact) {
        Elements.putLong(dtype, at, value.longValue());
      } else {
        Elements.putDouble(dtype, at, value.doubleValue());
      }
    }
  }
}
