package dev.weft.tensor.op;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.GatedKernels;
import dev.weft.tensor.cuda.CudaSwiglu;
import org.jspecify.annotations.Nullable;

/** Gated activations, computed in one pass over the data. Any thread. */
public final class Gated {
  private Gated() {}

  private static void check(String op, Tensor... in) {
    Check.floating(op, "input", in[0]);
    Check.sameDType(op, in);
    for (int i = 1; i < in.length; i++) {
      Check.sameShape(op, "input " + i, in[i], in[0].shape());
    }
  }

  private static final Op SWIGLU_BACKWARD =
      Op.function(
              "swiglu_backward",
              (in, a) -> {
                check("swiglu_backward", in);
                TensorSpec spec = new TensorSpec(in[1].shape(), in[1].dtype());
                return new TensorSpec[] {spec, spec};
              },
              (in, out, a) -> GatedKernels.swigluBackward(in[0], in[1], in[2], out[0], out[1]))
          .cuda((in, out, a) -> CudaSwiglu.backward(in[0], in[1], in[2], out[0], out[1]))
          .notDifferentiable();

  private static final Op SWIGLU =
      Op.function(
              "swiglu",
              (in, a) -> {
                check("swiglu", in);
                return TensorSpec.one(in[0].shape(), in[0].dtype());
              },
              (in, out, a) -> GatedKernels.swiglu(in[0], in[1], out[0]))
          .cuda((in, out, a) -> CudaSwiglu.forward(in[0], in[1], out[0]))
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) -> {
                    Tensor[] both =
                        Dispatcher.callAll(
                            SWIGLU_BACKWARD, Attrs.NONE, g, ctx.input(0), ctx.input(1));
                    return new @Nullable Tensor[] {
                      ctx.needs(0) ? both[0] : null, ctx.needs(1) ? both[1] : null
                    };
                  }));

  /**
   * silu(gate) * value for two tensors of one shape and dtype, rounded once: the gate of a SwiGLU
   * layer; Shazeer, arXiv:2002.05202.
   */
  public static Tensor swiglu(Tensor gate, Tensor value) {
    return Dispatcher.call(SWIGLU, Attrs.NONE, gate, value);
  }
}
