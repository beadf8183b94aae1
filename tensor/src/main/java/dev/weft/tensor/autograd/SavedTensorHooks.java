package dev.weft.tensor.autograd;

import dev.weft.tensor.Tensor;

/**
 * What stands for the tensors that calls save for their backward while it is open on a thread: a
 * recipe to compute them again, say, or a copy elsewhere. The counterpart of PyTorch's {@code
 * saved_tensors_hooks}. Used by the thread that runs forward and backward.
 */
public interface SavedTensorHooks {
  /**
   * Gives what is kept in the tensor's place. The graph itself does not hold the tensor then.
   *
   * @param saved an input or output of the call
   */
  Object pack(Tensor saved);

  /**
   * The tensor again, in backward; called each time that a formula reads it, with nothing recorded.
   *
   * @return the same values, shape and dtype; it must live until {@link #release}
   */
  Tensor unpack(Object packed);

  /** Called once, when backward has used what was kept. */
  void release(Object packed);
}
