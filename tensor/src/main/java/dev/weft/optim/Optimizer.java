package dev.weft.optim;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.InPlace;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Updates parameters from their gradients. Its state is made at the first step of a parameter,
 * takes the parameter's kind and layout, and belongs to the optimiser. Used by one thread.
 */
public abstract class Optimizer implements AutoCloseable {
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

  // ---- state ----

  /**
   * The state as tensors, named {@code <parameter>.<slot>} ({@code layers.0.weight.exp_avg}). What
   * does not exist yet is made, filled with zeros, which is what the first step would begin with:
   * so the map can be saved at any time, and be filled from a checkpoint before the first step. The
   * tensors are the optimiser's own.
   *
   * @param names each parameter's name, as {@code Module.namedParameters} gives them; of a tied
   *     parameter's names the first counts
   * @throws IllegalArgumentException if a parameter has no name
   */
  public final Map<String, Tensor> state(Map<String, Tensor> names) {
    IdentityHashMap<Tensor, String> byTensor = new IdentityHashMap<>();
    names.forEach((name, t) -> byTensor.putIfAbsent(t, name));
    Map<String, Tensor> out = new LinkedHashMap<>();
    for (int i = 0; i < parameters.size(); i++) {
      Tensor p = parameters.get(i);
      String name = byTensor.get(p);
      if (name == null) {
        throw new IllegalArgumentException(
            "names: parameter "
                + i
                + " of the optimiser ("
                + p.describe()
                + ") is not among "
                + names.keySet());
      }
      for (Map.Entry<String, @Nullable Tensor[]> slot : slots().entrySet()) {
        out.put(name + "." + slot.getKey(), existing(slot.getValue(), i));
      }
    }
    return out;
  }

  private Tensor existing(@Nullable Tensor[] slot, int index) {
    Tensor t = slot[index];
    if (t == null) {
      t = zerosLike(parameters.get(index));
      slot[index] = t;
    }
    return t;
  }

  /** The state that is not tensors: {@code steps} and {@code learningRate}. */
  public final Map<String, Double> scalars() {
    return Map.of("steps", (double) steps, "learningRate", learningRate);
  }

  /**
   * Goes on from another optimiser's state of the same kind.
   *
   * @param names this optimiser's parameter names
   * @param state as {@link #state}; values are copied, whatever their placements where both sides
   *     are distributed
   * @param scalars as {@link #scalars}
   * @throws IllegalArgumentException if names or shapes differ; nothing is changed then
   */
  public final void loadState(
      Map<String, Tensor> names, Map<String, Tensor> state, Map<String, Double> scalars) {
    Map<String, Tensor> own = state(names);
    if (!own.keySet().equals(state.keySet())) {
      throw new IllegalArgumentException(
          "state has " + state.keySet() + "; expected " + own.keySet());
    }
    own.forEach(
        (name, t) -> {
          Tensor from = Objects.requireNonNull(state.get(name));
          if (!Arrays.equals(from.shape(), t.shape())) {
            throw new IllegalArgumentException(
                "state '" + name + "' is " + from.describe() + "; expected " + t.describe());
          }
        });
    loadScalars(scalars);
    Autograd.noGrad(
        () ->
            own.forEach(
                (name, t) -> {
                  Tensor unused = InPlace.copy(t, Objects.requireNonNull(state.get(name)));
                }));
  }

  /**
   * Sets the number of steps and the learning rate.
   *
   * @param scalars as {@link #scalars}
   */
  public final void loadScalars(Map<String, Double> scalars) {
    Double count = scalars.get("steps");
    Double rate = scalars.get("learningRate");
    if (count == null || rate == null || !(count >= 0) || count != Math.rint(count)) {
      throw new IllegalArgumentException(
          "scalars are " + scalars + "; expected steps, a whole number, and learningRate");
    }
    learningRate(rate);
    steps = count.longValue();
  }

  /** The tensors of each name, by the position of their parameter; filled as they are needed. */
  abstract Map<String, @Nullable Tensor[]> slots();

  /** Changes a parameter; {@code index} is its position in {@link #parameters}. */
  abstract void update(int index, Tensor parameter, Tensor gradient);

  /** Frees the state. */
  @Override
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
