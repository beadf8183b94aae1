package dev.weft.tensor.cpu;

import dev.weft.tensor.StridedTensor;

/** Elementwise loops. */
public final class PointwiseKernels {
  private PointwiseKernels() {}

  /** out = in[0] + in[1] for equal shapes. */
  public static void add(StridedTensor[] in, StridedTensor out) {
    StridedTensor a = in[0];
    StridedTensor b = in[1];
    long n = out.numel();
    for (long i = 0; i < n; i++) {
      double x =
          Elements.getDouble(
              a.dtype(), a.dataAddress() + HostData.position(a, i) * a.dtype().byteSize());
      double y =
          Elements.getDouble(
              b.dtype(), b.dataAddress() + HostData.position(b, i) * b.dtype().byteSize());
      Elements.putDouble(
          out.dtype(),
          out.dataAddress() + HostData.position(out, i) * out.dtype().byteSize(),
          x + y);
    }
  }
}
