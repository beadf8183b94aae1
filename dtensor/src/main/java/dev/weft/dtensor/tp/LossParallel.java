package dev.weft.dtensor.tp;

import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.ParallelCrossEntropy;
import dev.weft.tensor.op.Dispatcher;
import java.util.function.Supplier;

/**
 * Cross-entropy of logits whose classes are cut over ranks, without gathering them: three small
 * all-reduces forward (maximum, sum of exponentials, the targets' logits) and none backward. It
 * holds for the thread that opens it, until it is closed.
 */
public final class LossParallel implements AutoCloseable {
  private final Dispatcher.Installed installed;

  private LossParallel() {
    installed =
        Dispatcher.install(
            call ->
                call.op().name().equals("cross_entropy") && call.inputs()[0] instanceof DTensor
                    ? ParallelCrossEntropy.call(call.attrs(), call.inputs())
                    : call.proceed());
  }

  /**
   * From here on, {@code Losses.crossEntropy} of distributed logits wants their classes cut along
   * exactly one mesh dimension.
   */
  public static LossParallel open() {
    return new LossParallel();
  }

  /** Runs a body within. */
  public static <T> T with(Supplier<T> body) {
    try (LossParallel open = open()) {
      return body.get();
    }
  }

  @Override
  public void close() {
    installed.close();
  }
}
