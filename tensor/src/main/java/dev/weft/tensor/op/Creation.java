package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.cpu.FillKernels;

/** Operators that make tensors of given values. Any thread. */
public final class Creation {
  private Creation() {}

  private static final Op FULL_LIKE =
      Op.function(
          "full_like",
          (in, a) ->
              TensorSpec.one(in[0].shape(), a.isNull(1) ? in[0].dtype() : a.get(1, DType.class)),
          (in, out, a) -> FillKernels.fill(out[0], a.get(0, Number.class)));

  /** A tensor of the same shape, dtype, device and layout over ranks, filled with a value. */
  public static Tensor fullLike(Tensor like, Number value) {
    return Dispatcher.call(FULL_LIKE, Attrs.of(value, null), like);
  }

  /** A tensor filled with a value. */
  public static StridedTensor full(Number value, DType dtype, Device device, long... shape) {
    StridedTensor t = Tensors.empty(dtype, device, shape);
    return (StridedTensor) Dispatcher.call(FULL_LIKE, Attrs.of(value, null), t);
  }

  /** A CPU tensor of zeros. */
  public static StridedTensor zeros(DType dtype, long... shape) {
    return full(0, dtype, Device.CPU, shape);
  }

  /** A CPU tensor of ones. */
  public static StridedTensor ones(DType dtype, long... shape) {
    return full(1, dtype, Device.CPU, shape);
  }
}
