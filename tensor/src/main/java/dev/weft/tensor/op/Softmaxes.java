package dev.weft.tensor.op;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.SoftmaxKernels;
import dev.weft.tensor.cuda.CudaSoftmax;

/** Softmax and its logarithm along a dimension (attribute 0). Any thread. */
public final class Softmaxes {
  private Softmaxes() {}

  private static Op backward(String name, boolean log) {
    return Op.function(
            name,
            (in, a) -> {
              Check.sameShape(name, "output", in[1], in[0].shape());
              return TensorSpec.one(in[1].shape(), in[1].dtype());
            },
            (in, out, a) -> SoftmaxKernels.backward(in[0], in[1], out[0], a.intAt(0), log))
        .cuda((in, out, a) -> CudaSoftmax.backward(in[0], in[1], out[0], a.intAt(0), log))
        .notDifferentiable();
  }

  private static Op forward(String name, Op backward, boolean log) {
    return Op.function(
            name,
            (in, a) -> {
              int unused = Check.dim(name, a.intAt(0), in[0].ndim());
              Check.floating(name, "input", in[0]);
              return TensorSpec.one(in[0].shape(), in[0].dtype());
            },
            (in, out, a) ->
                SoftmaxKernels.softmax(
                    in[0], out[0], Check.dim(name, a.intAt(0), in[0].ndim()), log))
        .cuda(
            (in, out, a) ->
                CudaSoftmax.forward(in[0], out[0], Check.dim(name, a.intAt(0), in[0].ndim()), log))
        .gradient(
            Op.Saves.OUTPUTS,
            Grads.unary(
                (ctx, g) ->
                    Dispatcher.call(
                        backward,
                        Attrs.of(Check.dim(name, ctx.attrs().intAt(0), ctx.inputShape(0).length)),
                        g,
                        ctx.output(0))));
  }

  private static final Op SOFTMAX_BACKWARD = backward("softmax_backward", false);
  private static final Op LOG_SOFTMAX_BACKWARD = backward("log_softmax_backward", true);
  private static final Op SOFTMAX = forward("softmax", SOFTMAX_BACKWARD, false);
  private static final Op LOG_SOFTMAX = forward("log_softmax", LOG_SOFTMAX_BACKWARD, true);

  /** e^x over its sum along a dimension. */
  public static Tensor softmax(Tensor x, int dim) {
    return Dispatcher.call(SOFTMAX, Attrs.of(Check.dim("softmax", dim, x.ndim())), x);
  }

  /** The logarithm of softmax. */
  public static Tensor logSoftmax(Tensor x, int dim) {
    return Dispatcher.call(LOG_SOFTMAX, Attrs.of(Check.dim("log_softmax", dim, x.ndim())), x);
  }
}
