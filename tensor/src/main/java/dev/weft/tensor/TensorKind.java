package dev.weft.tensor;

import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Op;
import java.util.List;

/**
 * How tensors that are not plain memory take part in operators. A kind sees every call that has one
 * of its tensors among the inputs, below autograd and above the devices' kernels.
 */
public interface TensorKind {
  /** Its name in messages, such as {@code DTensor}. */
  String name();

  /** The random stream of tensors of this kind, where a caller names none. */
  default Generator generator() {
    return Generator.current();
  }

  /**
   * The sum of the squares of all gradients of some parameters of this kind, over all ranks that
   * hold parts of them; gradients that are outstanding are settled. Called by all those ranks.
   */
  double squaredGradNorm(List<Tensor> parameters);

  /** Runs an operator; the inner calls that it makes do not record gradients. */
  Tensor[] dispatch(Op op, Attrs attrs, Tensor[] inputs);
}
