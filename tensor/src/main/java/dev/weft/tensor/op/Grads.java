package dev.weft.tensor.op;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Backward;
import org.jspecify.annotations.Nullable;

/** Shorthand for backward formulas of operators with one result. */
final class Grads {
  private Grads() {}

  /** A formula that gets the one gradient, which is there. */
  @FunctionalInterface
  interface Single {
    @Nullable Tensor[] apply(Backward.Context ctx, Tensor gradient);
  }

  /** A formula with one gradient and one differentiable input. */
  @FunctionalInterface
  interface Unary {
    Tensor apply(Backward.Context ctx, Tensor gradient);
  }

  static Backward of(Single formula) {
    return (ctx, g) -> {
      Tensor gradient = g[0];
      return gradient == null
          ? new @Nullable Tensor[ctx.inputCount()]
          : formula.apply(ctx, gradient);
    };
  }

  /** A gradient for input 0 alone. */
  static Backward unary(Unary formula) {
    return (ctx, g) -> {
      @Nullable Tensor[] result = new @Nullable Tensor[ctx.inputCount()];
      Tensor gradient = g[0];
      if (gradient != null && ctx.needs(0)) {
        result[0] = formula.apply(ctx, gradient);
      }
      return result;
    };
  }

  /** Sums what broadcasting repeated for an input. */
  static Tensor reduce(Backward.Context ctx, int input, Tensor gradient) {
    return Reductions.sumToSize(gradient, ctx.inputShape(input));
  }
}
