package dev.weft.nn;

import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.MatMul;
import org.jspecify.annotations.Nullable;

/** x weight^T + bias: input [..., in], {@code weight} [out, in], {@code bias} [out] if any. */
public final class Linear extends Module {
  /** Uniform first values within 1/sqrt(in), as in PyTorch. */
  public Linear(long in, long out, boolean bias, Generator generator) {
    this(
        Init.uniform(generator, 1 / Math.sqrt((double) in), out, in),
        bias ? Init.uniform(generator, 1 / Math.sqrt((double) in), out) : null);
  }

  /** Takes over given parameters. */
  public Linear(Tensor weight, @Nullable Tensor bias) {
    Tensor unused = registerParameter("weight", weight);
    if (bias != null) {
      unused = registerParameter("bias", bias);
    }
  }

  @Override
  protected Tensor forward(Tensor... inputs) {
    return MatMul.linear(
        inputs[0], parameter("weight"), hasParameter("bias") ? parameter("bias") : null);
  }
}
