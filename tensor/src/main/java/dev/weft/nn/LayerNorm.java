package dev.weft.nn;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Norms;

/** (x - mean) / sqrt(var + eps) * {@code weight} + {@code bias} over the last dimension. */
public final class LayerNorm extends Module {
  private final double eps;

  /** A weight of ones and a bias of zeros. */
  public LayerNorm(long width, double eps) {
    this.eps = eps;
    Tensor unused = registerParameter("weight", Init.full(1, width));
    unused = registerParameter("bias", Init.full(0, width));
  }

  @Override
  protected Tensor forward(Tensor... inputs) {
    Tensor weight = parameter("weight");
    return Norms.layerNorm(inputs[0], weight.shape(), weight, parameter("bias"), eps);
  }
}
