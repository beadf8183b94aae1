package dev.weft.parallel.pipeline;

import dev.weft.tensor.Tensor;

/** The loss of one microbatch, on the last stage. */
@FunctionalInterface
public interface Loss {
  /** The mean over the microbatch: one element. */
  Tensor of(Tensor output, Tensor target);
}
