package dev.weft.parallel;

import dev.weft.c10d.ProcessGroup;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import java.util.List;

/**
 * Gradients that travel together, as a {@link CommunicationHook} gets them. Used by the thread that
 * acts for the rank.
 *
 * @param index the position in the order of reduction, from 0; the same on all ranks
 * @param buffer this rank's gradients one after the other, flat, of one dtype; the hook may use its
 *     memory
 * @param parameters whose gradients they are, in that order
 * @param group the ranks to reduce over
 */
public record GradientBucket(
    int index, StridedTensor buffer, List<Tensor> parameters, ProcessGroup group) {
  /** Copies the list. */
  public GradientBucket {
    parameters = List.copyOf(parameters);
  }
}
