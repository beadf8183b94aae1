package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.cpu.CopyKernels;
import dev.weft.tensor.cuda.CudaCopies;

/** Copies, conversions of dtype, and moves between devices. Any thread. */
public final class Casts {
  private Casts() {}

  private static final Op CLONE =
      Op.function(
              "clone",
              (in, a) -> TensorSpec.one(in[0].shape(), in[0].dtype()),
              (in, out, a) -> CopyKernels.copy(in[0], out[0]))
          .cuda((in, out, a) -> CudaCopies.copy(in[0], out[0]))
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> g));

  private static final Op TO =
      Op.function(
              "to",
              (in, a) -> TensorSpec.one(in[0].shape(), a.get(0, DType.class)),
              (in, out, a) -> CopyKernels.copy(in[0], out[0]))
          .cuda((in, out, a) -> CudaCopies.copy(in[0], out[0]))
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> to(g, ctx.inputDType(0))));

  private static final Op TO_DEVICE =
      Op.composite("to_device", (in, a) -> new Tensor[] {moved(in[0], a.get(0, Device.class))})
          .gradient(
              Op.Saves.NOTHING, Grads.unary((ctx, g) -> to(g, ctx.attrs().get(1, Device.class))));

  private static Tensor moved(Tensor x, Device device) {
    if (x.kind() != null || !(x instanceof StridedTensor t)) {
      throw new IllegalArgumentException(
          "to: "
              + x.describe()
              + " is spread over ranks; move its local tensor, or make it on "
              + device
              + " at once");
    }
    if (t.device().isMeta()) {
      throw new IllegalArgumentException(
          "to: a meta tensor has no values to move to " + device + "; got " + x.describe());
    }
    return device.isMeta() ? Tensors.empty(t.dtype(), device, t.shape()) : CudaCopies.to(t, device);
  }

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

  /**
   * The values on another device, contiguous, through which gradients flow back; the tensor itself
   * where it is there already. A copy from a device to the host waits for that device's stream.
   */
  public static Tensor to(Tensor x, Device device) {
    return x.device().equals(device)
        ? x
        : Dispatcher.call(TO_DEVICE, Attrs.of(device, x.device()), x);
  }
}
