package dev.weft.tensor.cpu;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.cuda.CudaCopies;
import dev.weft.tensor.memory.Memory;
import java.util.Arrays;

/** Tensors from Java arrays and back. Any thread. */
public final class HostData {
  private HostData() {}

  /** The value of a tensor of one element, as a double. */
  public static double item(Tensor tensor) {
    if (tensor.numel() != 1) {
      throw new IllegalArgumentException(
          "item: the tensor ("
              + tensor.describe()
              + ") has "
              + tensor.numel()
              + " elements; expected 1");
    }
    StridedTensor t = onHost(tensor.plain());
    return Elements.getDouble(t.dtype(), t.dataAddress());
  }

  /** The values in row-major order. */
  public static float[] floats(StridedTensor t) {
    double[] d = doubles(t);
    float[] f = new float[d.length];
    for (int i = 0; i < f.length; i++) {
      f[i] = (float) d[i];
    }
    return f;
  }

  /** The values in row-major order. */
  public static double[] doubles(StridedTensor tensor) {
    StridedTensor t = onHost(tensor);
    double[] out = new double[arrayLength(t)];
    long base = t.dataAddress();
    for (int i = 0; i < out.length; i++) {
      out[i] = Elements.getDouble(t.dtype(), base + position(t, i) * t.dtype().byteSize());
    }
    return out;
  }

  /** The values in row-major order. */
  public static long[] longs(StridedTensor tensor) {
    StridedTensor t = onHost(tensor);
    long[] out = new long[arrayLength(t)];
    long base = t.dataAddress();
    for (int i = 0; i < out.length; i++) {
      out[i] = Elements.getLong(t.dtype(), base + position(t, i) * t.dtype().byteSize());
    }
    return out;
  }

  /** Offset in elements of the i-th element in row-major order, from the first one. */
  static long position(StridedTensor t, long i) {
    if (t.isContiguous()) {
      return i;
    }
    long rest = i;
    long at = 0;
    for (int d = t.ndim() - 1; d >= 0; d--) {
      long size = t.shape()[d];
      at += (rest % size) * t.strides()[d];
      rest /= size;
    }
    return at;
  }

  private static int arrayLength(StridedTensor t) {
    long n = t.numel();
    if (n > Integer.MAX_VALUE - 8) {
      throw new IllegalArgumentException(
          "a tensor of " + n + " elements does not fit into a Java array");
    }
    return (int) n;
  }

  /** The tensor, or a copy on the host of one that lies on a device. */
  private static StridedTensor onHost(StridedTensor t) {
    if (t.device().isMeta()) {
      throw new IllegalArgumentException("a meta tensor has no values; got " + t.describe());
    }
    return t.device().isCpu() ? t : CudaCopies.to(t, Device.CPU);
  }

  private static StridedTensor make(DType dtype, int length, long[] shape) {
    long[] s = shape.length == 0 && length != 1 ? new long[] {length} : shape;
    if (Shapes.numel(Shapes.check(s)) != length) {
      throw new IllegalArgumentException(
          "shape " + Arrays.toString(s) + " does not hold " + length + " values");
    }
    return Tensors.empty(dtype, s);
  }

  /** A float32 tensor; no shape means one dimension (none for a single value). */
  public static Tensor of(float[] values, long... shape) {
    StridedTensor t = make(DType.FLOAT32, values.length, shape);
    Memory.put(t.dataAddress(), values, 0, values.length);
    return t;
  }

  /** A float64 tensor; no shape means one dimension (none for a single value). */
  public static Tensor of(double[] values, long... shape) {
    StridedTensor t = make(DType.FLOAT64, values.length, shape);
    Memory.put(t.dataAddress(), values, 0, values.length);
    return t;
  }

  /** An int64 tensor; no shape means one dimension (none for a single value). */
  public static Tensor of(long[] values, long... shape) {
    StridedTensor t = make(DType.INT64, values.length, shape);
    Memory.put(t.dataAddress(), values, 0, values.length);
    return t;
  }
}
