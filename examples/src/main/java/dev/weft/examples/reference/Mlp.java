package dev.weft.examples.reference;

import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Activations;

/** A two-layer classifier. Input float32 [batch, d_in], output [batch, n_classes]. */
public final class Mlp extends Module {
  private final Linear first;
  private final Linear second;

  /** The model with the reference's initial parameters. */
  public Mlp(MlpConfig c) {
    first = registerModule("fc1", linear(c, "fc1", c.dHidden(), c.dIn()));
    second = registerModule("fc2", linear(c, "fc2", c.nClasses(), c.dHidden()));
  }

  private static Linear linear(MlpConfig c, String name, int out, int in) {
    return TensorScope.outside(
        () ->
            new Linear(
                Initialization.parameter(c.seed(), name + ".weight", out, in),
                Initialization.parameter(c.seed(), name + ".bias", out)));
  }

  @Override
  protected Tensor forward(Tensor... inputs) {
    return second.call(Activations.relu(first.call(inputs[0])));
  }
}
