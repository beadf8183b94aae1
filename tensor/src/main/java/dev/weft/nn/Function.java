package dev.weft.nn;

import dev.weft.tensor.Tensor;
import java.util.function.UnaryOperator;

/** A function of one tensor as a module without parameters, such as {@code Activations::relu}. */
public final class Function extends Module {
  private final UnaryOperator<Tensor> function;

  /** Wraps a function. */
  public Function(UnaryOperator<Tensor> function) {
    this.function = function;
  }

  @Override
  protected Tensor forward(Tensor... inputs) {
    return function.apply(inputs[0]);
  }
}
