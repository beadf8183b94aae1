package dev.weft.c10d;

import java.time.Duration;

/**
 * A point in time that one wait, made of several steps, must not pass: it goes through all layers,
 * so that no step starts a timeout of its own. Immutable; safe to share between threads.
 */
public final class Deadline {
  private static final long FOREVER = Long.MAX_VALUE / 4;

  private final Duration timeout;
  private final long start = System.nanoTime();
  private final long length;

  private Deadline(Duration timeout) {
    this.timeout = timeout;
    this.length = timeout.toSeconds() > FOREVER / 1_000_000_000L ? FOREVER : timeout.toNanos();
  }

  /**
   * Starts a deadline now.
   *
   * @param timeout how long from now; zero or more
   * @return the deadline
   * @throws IllegalArgumentException if the timeout is negative
   */
  public static Deadline after(Duration timeout) {
    if (timeout.isNegative()) {
      throw new IllegalArgumentException("timeout is " + timeout + "; expected zero or more");
    }
    return new Deadline(timeout);
  }

  /**
   * Returns what is left, never negative.
   *
   * @return the remaining time
   */
  public Duration remaining() {
    return Duration.ofNanos(remainingNanos());
  }

  /**
   * Returns what is left in nanoseconds, never negative.
   *
   * @return the remaining nanoseconds
   */
  public long remainingNanos() {
    return Math.max(0, length - (System.nanoTime() - start));
  }

  /**
   * Returns what is left in milliseconds, rounded up so that a sleep of that length does pass the
   * deadline.
   *
   * @return the remaining milliseconds, at most {@link Integer#MAX_VALUE}
   */
  public int remainingMillis() {
    return (int) Math.min(Integer.MAX_VALUE, (remainingNanos() + 999_999) / 1_000_000);
  }

  /**
   * Returns whether nothing is left.
   *
   * @return true once the deadline has passed
   */
  public boolean hasPassed() {
    return remainingNanos() == 0;
  }

  /**
   * Returns the time it was started with, for messages.
   *
   * @return the whole timeout
   */
  public Duration timeout() {
    return timeout;
  }

  @Override
  public String toString() {
    return timeout.toMillis() + " ms";
  }
}
