package dev.weft.nn;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Norms;

/**
 * x / sqrt(mean(x^2) + eps) * {@code weight} over the last dimension; under {@link Autocast}
 * computed in float32 and given in its lower precision, for the products that follow.
 */
public final class RmsNorm extends Module {
  private final double eps;

  /** A weight of ones. */
  public RmsNorm(long width, double eps) {
    this(Init.full(1, width), eps);
  }

  /** Takes over a given weight. */
  public RmsNorm(Tensor weight, double eps) {
    this.eps = eps;
    Tensor unused = registerParameter("weight", weight);
  }

  @Override
  protected Tensor forward(Tensor... inputs) {
    Tensor weight = parameter("weight");
    DType low = Autocast.current();
    return low == null
        ? Norms.rmsNorm(inputs[0], weight.shape(), weight, eps)
        : Norms.rmsNorm(inputs[0], weight.shape(), weight, eps, low);
  }
}
