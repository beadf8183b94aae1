package dev.weft.tensor.cpu;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.memory.Memory;

/** Copies between layouts and dtypes. */
public final class CopyKernels {
  private CopyKernels() {}

  /** Copies element by element in row-major order; equal shapes, any strides and dtypes. */
  public static void copy(StridedTensor from, StridedTensor to) {
    DType source = from.dtype();
    DType target = to.dtype();
    long a = from.dataAddress();
    long b = to.dataAddress();
    if (source == target && from.isContiguous() && to.isContiguous()) {
      Memory.copy(a, b, from.numel() * source.byteSize());
      return;
    }
    boolean exact = !source.isFloatingPoint();
    long n = from.numel();
    for (long i = 0; i < n; i++) {
      long x = a + HostData.position(from, i) * source.byteSize();
      long y = b + HostData.position(to, i) * target.byteSize();
      if (exact) {
        Elements.putLong(target, y, Elements.getLong(source, x));
      } else {
        Elements.putDouble(target, y, Elements.getDouble(source, x));
      }
    }
  }
}
