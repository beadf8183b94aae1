package dev.weft.optim;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Creation;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Updates parameters from their gradients. Its state is made at the first step of a parameter,
 * takes the parameter's kind and layout, and belongs to the optimiser. Used by one thread.
 */
public abstract class Optimizer {
  private final List<Tensor> parameters;
  private double learningRate;
  private long steps;

  Optimizer(List<Tensor> parameters, double learningRate) {
    for (Tensor p : parameters) {
      if (!p.isLeaf()) {
        throw new IllegalArgumentException(
            "parameters: a tensor (" + p.describe() + ") is not a leaf; expected parameters");
      }
    }
    this.parameters = List.copyOf(parameters);
    learningRate(learningRate);
  }

  /** What is optimised. */
  public final List<Tensor> parameters() {
    return parameters;
  }

  /** The rate of the next step. */
  public final double learningRate() {
    return learningRate;
  }

  /** Sets the rate of the next step, from a {@link Schedule} for example. */
  public final void learningRate(double rate) {
    if (!(rate >= 0)) {
      throw new IllegalArgumentException("learningRate " + rate + "; expected 0 or more");
    }
    this.learningRate = rate;
  }

  /** How many steps were done. */
  public final long steps() {
    return steps;
  }

  /** Changes all parameters that have a gradient. */
  public final void step() {
    steps++;
    Autograd.noGrad(this::updateAll);
  }

  /** Changes all parameters that have a gradient, one after the other unless there is better. */
  void updateAll() {
    for (int i = 0; i < parameters.size(); i++) {
      Tensor p = parameters.get(i);
      Tensor g = p.grad();
      if (g != null) {
        update(i, p, g);
      }
    }
  }

  /** Clears the gradients. */
  public final void zeroGrad() {
    for (Tensor p : parameters) {
      p.setGrad(null);
    }
  }

  /** Changes a parameter; {@code index} is its position in {@link #parameters}. */
  abstract void update(int index, Tensor parameter, Tensor gradient);

  /** Frees the state. */
  public abstract void close();

  /** State like a parameter, filled with zeros; belongs to no scope. */
  static Tensor zerosLike(Tensor parameter) {
    return TensorScope.outside(() -> Creation.zerosLike(parameter));
  }

  static void closeAll(@Nullable Tensor[] state) {
    for (int i = 0; i < state.length; i++) {
      Tensor t = state[i];
      if (t != null) {
        t.close();
        state[i] = null;
      }
    }
  }
}
