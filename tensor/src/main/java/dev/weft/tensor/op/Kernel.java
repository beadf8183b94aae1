package dev.weft.tensor.op;

import dev.weft.tensor.StridedTensor;

/**
 * An operator's computation on one device. Called on any thread; reads inputs through their
 * storages' gates ({@link StridedTensor#dataAddress}).
 */
@FunctionalInterface
public interface Kernel {
  /**
   * Computes the outputs.
   *
   * @param inputs any strides, on the kernel's device
   * @param outputs allocated, contiguous and of arbitrary content; for an in-place operator its
   *     first input, with any strides
   * @param attrs the operator's other arguments
   */
  void run(StridedTensor[] inputs, StridedTensor[] outputs, Attrs attrs);
}
