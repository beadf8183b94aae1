package dev.weft.c10d.host;

import dev.weft.tensor.DType;

/** Which algorithm moves how much data between how many ranks, by measurement. Stateless. */
final class MessageTable {
  /** Two ranks send as much either way; one way takes a step less. */
  private static final int PAIR = 1 << 18;

  /** What the busiest rank's link is to be spared before a step more is worth it. */
  private static final long SPARED = 40 << 10;

  /** What is shorter takes as long as the step. */
  private static final long LEAST = 1 << 14;

  /** The same where data only pass through memory, which all ranks share. */
  private static final long LEAST_TOGETHER = 1 << 21;

  private MessageTable() {}

  static MessageAlgorithm allReduce(long bytes, int ranks) {
    long most = ranks == 2 ? PAIR : Round.INLINE;
    return bytes <= most || ranks == 1 ? MessageAlgorithm.FLAT : MessageAlgorithm.DIRECT;
  }

  /**
   * A broadcast, or a reduction to one rank. The root has the data of n - 1 others on its link, or
   * twice all but its own part.
   *
   * @param together whether all ranks are on one machine
   */
  static MessageAlgorithm rooted(long bytes, int ranks, boolean together) {
    double spared = (double) bytes * (ranks - 1) * (ranks - 2) / ranks;
    return spared < SPARED || bytes < (together ? LEAST_TOGETHER : LEAST)
        ? MessageAlgorithm.FLAT
        : MessageAlgorithm.SCATTER;
  }

  /** Whether elements are 16-bit floats, whose sums are to be rounded once. */
  static boolean isHalf(DType dtype) {
    return dtype.isFloatingPoint() && dtype.byteSize() == 2;
  }
}
