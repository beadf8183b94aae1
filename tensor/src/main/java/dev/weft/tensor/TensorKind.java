package dev.weft.tensor;

import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Op;

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

  /** Runs an operator; the inner calls that it makes do not record gradients. */
  Tensor[] dispatch(Op op, Attrs attrs, Tensor[] inputs);
}
