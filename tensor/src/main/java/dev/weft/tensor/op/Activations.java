package dev.weft.tensor.op;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.ActivationLoops;
import dev.weft.tensor.cpu.Elementwise;
import dev.weft.tensor.cpu.Loops;
import dev.weft.tensor.cpu.UnaryLoops;

/** Activation functions; each has a fused backward operator. Any thread. */
public final class Activations {
  private Activations() {}

  private static Op backward(String name, Loops loops) {
    return Op.function(
            name,
            (in, a) -> TensorSpec.one(Check.broadcast(name, in), in[0].dtype()),
            (in, out, a) -> Elementwise.run(loops, out[0].dtype(), in, out[0], a))
        .cuda(Pointwise.resultTyped(name))
        .notDifferentiable();
  }

  private static Op floatingOnly(String name, Loops loops) {
    return Op.function(
            name,
            (in, a) -> {
              Check.floating(name, "input", in[0]);
              return TensorSpec.one(in[0].shape(), in[0].dtype());
            },
            (in, out, a) -> Elementwise.run(loops, out[0].dtype(), in, out[0], a))
        .cuda(Pointwise.resultTyped(name));
  }

  private static final Op RELU_BACKWARD = backward("relu_backward", ActivationLoops.RELU_BACKWARD);
  private static final Op LEAKY_RELU_BACKWARD =
      backward("leaky_relu_backward", ActivationLoops.LEAKY_RELU_BACKWARD);
  private static final Op SIGMOID_BACKWARD =
      backward("sigmoid_backward", ActivationLoops.SIGMOID_BACKWARD);
  private static final Op TANH_BACKWARD = backward("tanh_backward", ActivationLoops.TANH_BACKWARD);
  private static final Op SILU_BACKWARD = backward("silu_backward", ActivationLoops.SILU_BACKWARD);

  private static final Op RELU =
      Unary.numeric("relu", ActivationLoops.RELU)
          .gradient(Op.Saves.OUTPUTS, Grads.unary((ctx, g) -> reluBackward(g, ctx.output(0))));

  private static final Op LEAKY_RELU =
      floatingOnly("leaky_relu", ActivationLoops.LEAKY_RELU)
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary(
                  (ctx, g) -> Dispatcher.call(LEAKY_RELU_BACKWARD, ctx.attrs(), g, ctx.input(0))));

  private static final Op SIGMOID =
      Unary.floating("sigmoid", UnaryLoops.SIGMOID)
          .gradient(
              Op.Saves.OUTPUTS,
              Grads.unary(
                  (ctx, g) -> Dispatcher.call(SIGMOID_BACKWARD, Attrs.NONE, g, ctx.output(0))));

  private static final Op TANH =
      Unary.floating("tanh", UnaryLoops.TANH)
          .gradient(
              Op.Saves.OUTPUTS,
              Grads.unary(
                  (ctx, g) -> Dispatcher.call(TANH_BACKWARD, Attrs.NONE, g, ctx.output(0))));

  private static final Op SILU =
      floatingOnly("silu", ActivationLoops.SILU)
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary((ctx, g) -> Dispatcher.call(SILU_BACKWARD, Attrs.NONE, g, ctx.input(0))));

  private static final Op GELU_BACKWARD =
      Op.function(
              "gelu_backward",
              (in, a) -> TensorSpec.one(Check.broadcast("gelu_backward", in), in[0].dtype()),
              (in, out, a) ->
                  Elementwise.run(
                      isTanh(a)
                          ? ActivationLoops.GELU_TANH_BACKWARD
                          : ActivationLoops.GELU_BACKWARD,
                      out[0].dtype(),
                      in,
                      out[0],
                      a))
          .cuda(gelu("gelu_backward", "gelu_tanh_backward"))
          .notDifferentiable();

  private static final Op GELU =
      Op.function(
              "gelu",
              (in, a) -> {
                Check.floating("gelu", "input", in[0]);
                String approximate = a.isNull(0) ? "none" : a.get(0, String.class);
                if (!approximate.equals("none") && !approximate.equals("tanh")) {
                  throw Check.bad(
                      "gelu", "approximate '" + approximate + "'; expected none or tanh");
                }
                return TensorSpec.one(in[0].shape(), in[0].dtype());
              },
              (in, out, a) ->
                  Elementwise.run(
                      isTanh(a) ? ActivationLoops.GELU_TANH : ActivationLoops.GELU,
                      out[0].dtype(),
                      in,
                      out[0],
                      a))
          .cuda(gelu("gelu", "gelu_tanh"))
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary(
                  (ctx, g) -> Dispatcher.call(GELU_BACKWARD, ctx.attrs(), g, ctx.input(0))));

  private static Kernel gelu(String exact, String tanh) {
    Kernel usual = Pointwise.resultTyped(exact);
    Kernel approximate = Pointwise.resultTyped(tanh);
    return (in, out, a) -> (isTanh(a) ? approximate : usual).run(in, out, a);
  }

  private static boolean isTanh(Attrs a) {
    return !a.isNull(0) && a.get(0, String.class).equals("tanh");
  }

  static Tensor reluBackward(Tensor g, Tensor output) {
    return Dispatcher.call(RELU_BACKWARD, Attrs.NONE, g, output);
  }

  /** max(x, 0); the slope at 0 is 0. */
  public static Tensor relu(Tensor x) {
    return Dispatcher.call(RELU, Attrs.NONE, x);
  }

  /** x where it is positive, else {@code slope} x. */
  public static Tensor leakyRelu(Tensor x, double slope) {
    return Dispatcher.call(LEAKY_RELU, Attrs.of(slope), x);
  }

  /** 1 / (1 + e^-x). */
  public static Tensor sigmoid(Tensor x) {
    return Dispatcher.call(SIGMOID, Attrs.NONE, x);
  }

  /** tanh x. */
  public static Tensor tanh(Tensor x) {
    return Dispatcher.call(TANH, Attrs.NONE, x);
  }

  /** x / (1 + e^-x). */
  public static Tensor silu(Tensor x) {
    return Dispatcher.call(SILU, Attrs.NONE, x);
  }

  /** x times the normal distribution function of x. */
  public static Tensor gelu(Tensor x) {
    return gelu(x, "none");
  }

  /** The same; {@code approximate} is {@code none} or {@code tanh}. */
  public static Tensor gelu(Tensor x, String approximate) {
    return Dispatcher.call(GELU, Attrs.of(approximate), x);
  }
}
