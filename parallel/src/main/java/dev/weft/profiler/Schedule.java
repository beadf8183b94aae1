package dev.weft.profiler;

/**
 * Which steps are recorded (PyTorch's {@code wait} is {@code skip} here): after {@code skip} steps
 * at full speed and {@code warmup} steps whose records are thrown away, {@code active} steps are
 * kept; then it begins anew, {@code repeat} times in all, or for ever where that is 0. Immutable.
 *
 * @param skip steps with nothing installed
 * @param warmup steps that are recorded and forgotten, so that code is compiled and caches are warm
 * @param active steps that are kept
 * @param repeat how often; 0 for no end
 */
public record Schedule(int skip, int warmup, int active, int repeat) {
  /** Checks the numbers. */
  public Schedule {
    if (skip < 0 || warmup < 0 || active < 1 || repeat < 0) {
      throw new IllegalArgumentException(
          "schedule skip=%d, warmup=%d, active=%d, repeat=%d; expected active >= 1 and no number below 0"
              .formatted(skip, warmup, active, repeat));
    }
  }

  /** Once: waits, warms up, records. */
  public static Schedule once(int skip, int warmup, int active) {
    return new Schedule(skip, warmup, active, 1);
  }

  /** What happens in a step. */
  public enum Phase {
    /** Nothing is installed. */
    WAIT,
    /** Records are made and thrown away. */
    WARMUP,
    /** Records are kept. */
    ACTIVE,
    /** All repetitions are over. */
    DONE
  }

  /** The steps of one repetition. */
  public int cycle() {
    return skip + warmup + active;
  }

  /**
   * What happens in a step.
   *
   * @param step from 0
   */
  public Phase phase(long step) {
    if (repeat > 0 && step >= (long) repeat * cycle()) {
      return Phase.DONE;
    }
    long at = step % cycle();
    return at < skip ? Phase.WAIT : at < skip + warmup ? Phase.WARMUP : Phase.ACTIVE;
  }

  /** Whether a step is the last one of its repetition that is kept. */
  boolean endsCycle(long step) {
    return step % cycle() == cycle() - 1;
  }

  /** Whether nothing is kept before a step of its repetition, but from it on something is seen. */
  boolean beginsRecording(long step) {
    return step % cycle() == skip;
  }
}
