package dev.weft.optim;

/** A learning rate for each step, counted from 0. */
@FunctionalInterface
public interface Schedule {
  /** The rate of a step. */
  double at(long step);

  /**
   * A linear rise to {@code rate} over the first steps, then half a cosine down to 0 at the last.
   *
   * @param warmup steps of the rise; step t has rate (t + 1) / warmup
   * @param steps of the whole run
   */
  static Schedule cosineWithWarmup(double rate, long warmup, long steps) {
    if (warmup < 0 || steps <= warmup) {
      throw new IllegalArgumentException(
          "warmup " + warmup + " and steps " + steps + "; expected 0 <= warmup < steps");
    }
    return t ->
        t < warmup
            ? rate * (t + 1) / warmup
            : rate * 0.5 * (1 + Math.cos(Math.PI * (t - warmup) / (steps - warmup)));
  }
}
