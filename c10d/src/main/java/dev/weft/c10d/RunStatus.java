package dev.weft.c10d;

import dev.weft.c10d.metrics.RankMetrics;
import dev.weft.c10d.metrics.StatusFile;
import dev.weft.tensor.Device;
import dev.weft.tensor.cuda.CudaMemory;
import dev.weft.tensor.memory.HostMemory;

/**
 * Tells how far a rank's training is, for whoever looks on: {@code weft run}'s view of the ranks,
 * and the rank's metrics. Costs next to nothing, so that it may be called in every step. Called on
 * a thread of the rank.
 */
public final class RunStatus {
  private RunStatus() {}

  /**
   * Reports a step that has ended.
   *
   * @param step its number, from 1
   * @param loss its loss, or NaN on a rank that does not know
   * @param tokensPerSecond of the whole run
   * @throws IllegalStateException on a thread that belongs to no rank
   */
  public static void report(long step, double loss, double tokensPerSecond) {
    RankContext context = RankContext.current();
    RankMetrics metrics = context.metrics();
    if (metrics != null) {
      metrics.progress(step, loss, tokensPerSecond);
    }
    StatusFile file = context.statusFile();
    if (file != null) {
      Device device = context.boundDevice();
      file.tell(
          new StatusFile.Status(
              step,
              loss,
              tokensPerSecond,
              HostMemory.liveBytes(),
              device == null ? 0 : CudaMemory.stats(device.index()).allocatedBytes(),
              System.currentTimeMillis()));
    }
  }
}
