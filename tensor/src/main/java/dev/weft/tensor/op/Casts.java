package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.CopyKernels;

/** Copies and conversions of dtype. Any thread. */
public final class Casts {
  private Casts() {}

  private static final Op CLONE =
      Op.function(
              "clone",
              (in, a) -> TensorSpec.one(in[0].shape(), in[0].dtype()),
              (in, out, a) -> CopyKernels.copy(in[0], out[0]))
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> g));

  private static final Op TO =
      Op.function(
              "to",
              (in, a) -> TensorSpec.one(in[0].shape(), a.get(0, DType.class)),
              (in, out, a) -> CopyKernels.copy(in[0], out[0]))
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> to(g, ctx.inputDType(0))));

  /** The tensor itself where it lies in row-major order without gaps, else a copy that does. */
  public static Tensor contiguous(Tensor x) {
    return x.isContiguous() ? x : copy(x);
  }

  /** A contiguous copy. */
  public static Tensor copy(Tensor x) {
    return Dispatcher.call(CLONE, Attrs.NONE, x);
  }

  /** The values as another dtype; the tensor itself where it has it already. */
  public static Tensor to(Tensor x, DType dtype) {
    return x.dtype() == dtype ? x : Dispatcher.call(TO, Attrs.of(dtype), x);
  }
}
