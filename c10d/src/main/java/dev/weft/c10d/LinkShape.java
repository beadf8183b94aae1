package dev.weft.c10d;

import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A slow network between islands of ranks, simulated by the host backend: every message from a rank
 * of one island to one of another occupies the way between these two ranks for its bytes over the
 * bandwidth, and arrives after the delay on top. Within an island nothing is changed. Immutable.
 *
 * @param ranksPerIsland how many consecutive global ranks are one island
 * @param delay of each message, one way
 * @param bytesPerSecond between two ranks, one way
 */
public record LinkShape(int ranksPerIsland, Duration delay, double bytesPerSecond) {
  /** Checks the numbers. */
  public LinkShape {
    if (ranksPerIsland < 1 || delay.isNegative() || !(bytesPerSecond > 0)) {
      throw new IllegalArgumentException(
          "LinkShape: ranksPerIsland is "
              + ranksPerIsland
              + ", delay "
              + delay
              + " and bytesPerSecond "
              + bytesPerSecond
              + "; expected 1 or more, 0 or more, more than 0");
    }
  }

  /** Whether two ranks, by global rank, are on different islands. */
  public boolean isSlow(int from, int to) {
    return from / ranksPerIsland != to / ranksPerIsland;
  }

  /** How long a message of so many bytes occupies the way. */
  public long occupiedNanos(long bytes) {
    return (long) (bytes / bytesPerSecond * 1e9);
  }

  /**
   * What {@code WEFT_LINK_DELAY_MS}, {@code WEFT_LINK_MB_S} (10^6 bytes a second) and {@code
   * WEFT_LINK_ISLAND} (ranks, 1 unless set) say; null where neither of the first two is set.
   */
  static @Nullable LinkShape fromEnvironment(Map<String, String> environment) {
    String delay = environment.get("WEFT_LINK_DELAY_MS");
    String rate = environment.get("WEFT_LINK_MB_S");
    if (delay == null && rate == null) {
      return null;
    }
    double millis = number("WEFT_LINK_DELAY_MS", delay == null ? "0" : delay);
    double megabytes = rate == null ? Double.POSITIVE_INFINITY : number("WEFT_LINK_MB_S", rate);
    String ranks = environment.getOrDefault("WEFT_LINK_ISLAND", "1");
    double island = number("WEFT_LINK_ISLAND", ranks);
    if (island != Math.rint(island)) {
      throw new IllegalArgumentException(
          "WEFT_LINK_ISLAND is '" + ranks + "'; expected a whole number of ranks");
    }
    return new LinkShape((int) island, Duration.ofNanos((long) (millis * 1e6)), megabytes * 1e6);
  }

  private static double number(String name, String text) {
    try {
      return Double.parseDouble(text);
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException(name + " is '" + text + "'; expected a number", e);
    }
  }
}
