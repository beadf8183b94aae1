package dev.weft.c10d;

import dev.weft.c10d.metrics.RankMetrics;

/**
 * Tells how far a rank's training is, for whoever looks on: the rank's metrics. Costs next to
 * nothing where nobody does, so that it may be called in every step. Called on a thread of the rank.
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
    RankMetrics metrics = RankContext.current().metrics();
    if (metrics != null) {
      metrics.progress(step, loss, tokensPerSecond);
    }
  }
}
