package dev.weft.examples.reference;

import java.nio.charset.StandardCharsets;

/**
 * A stream of pseudo-random numbers of which each depends only on its position (SplitMix64, seeded
 * by a number and a name), so that any part of a tensor can be made without the rest. Immutable.
 */
public final class NumberStream {
  private static final long GAMMA = 0x9e3779b97f4a7c15L;

  private final long start;

  /** The stream of a seed and a name. */
  public NumberStream(long seed, String name) {
    this.start = seed ^ fnv1a64(name);
  }

  /** The 64-bit FNV-1a hash of a name's UTF-8 bytes. */
  public static long fnv1a64(String name) {
    long hash = 0xcbf29ce484222325L;
    for (byte b : name.getBytes(StandardCharsets.UTF_8)) {
      hash = (hash ^ (b & 0xff)) * 0x100000001b3L;
    }
    return hash;
  }

  /** Output number n. */
  public long at(long n) {
    long z = start + (n + 1) * GAMMA;
    z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
    z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
    return z ^ (z >>> 31);
  }

  /** A multiple of 2^-23 in [-1, 1). */
  public float symmetric(long n) {
    return ((at(n) >>> 40) - (1L << 23)) * 0x1p-23f;
  }

  /** An integer in [0, bound). */
  public long below(long n, long bound) {
    return (at(n) >>> 33) % bound;
  }
}
