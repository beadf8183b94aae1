package dev.weft.examples.trainer;

import dev.weft.examples.reference.NumberStream;

/**
 * A pseudo-random order of [0, size) that needs no memory: a Feistel network over the next power of
 * four, walked on until it is inside (Black and Rogaway, Ciphers with Arbitrary Finite Domains,
 * 2002). Immutable.
 */
final class Permutation {
  private static final int ROUNDS = 4;

  private final long size;
  private final int half;
  private final NumberStream[] rounds = new NumberStream[ROUNDS];

  Permutation(long seed, long number, long size) {
    this.size = size;
    int bits = 64 - Long.numberOfLeadingZeros(Math.max(size - 1, 1));
    this.half = (bits + 1) / 2;
    for (int r = 0; r < ROUNDS; r++) {
      rounds[r] = new NumberStream(seed, "data.order." + number + "." + r);
    }
  }

  /** What stands at a place. */
  long at(long place) {
    long x = place;
    do {
      x = once(x);
    } while (x >= size);
    return x;
  }

  private long once(long x) {
    long mask = (1L << half) - 1;
    long left = x >>> half;
    long right = x & mask;
    for (NumberStream round : rounds) {
      long next = left ^ (round.at(right) & mask);
      left = right;
      right = next;
    }
    return (left << half) | right;
  }
}
