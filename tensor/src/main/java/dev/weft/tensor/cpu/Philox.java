package dev.weft.tensor.cpu;

/** Philox-4x32-10 (Salmon et al., SC 2011): 64 random bits for each index. Not thread-safe. */
final class Philox {
  private static final long M0 = 0xD2511F53L;
  private static final long M1 = 0xCD9E8D57L;
  private static final int W0 = 0x9E3779B9;
  private static final int W1 = 0xBB67AE85;

  private final int key0;
  private final int key1;
  private final long offset;
  // The block made last, which holds the bits of two neighbouring indices.
  private long block = -1;
  private long even;
  private long odd;

  /** The stream of a seed from block {@code offset} on. */
  Philox(long seed, long offset) {
    this.key0 = (int) seed;
    this.key1 = (int) (seed >>> 32);
    this.offset = offset;
  }

  /** The bits of an index, 0 or more. */
  long bits(long index) {
    long b = index >>> 1;
    if (b != block) {
      generate(b);
    }
    return (index & 1) == 0 ? even : odd;
  }

  private void generate(long b) {
    block = b;
    long counter = offset + b;
    int c0 = (int) counter;
    int c1 = (int) (counter >>> 32);
    int c2 = 0;
    int c3 = 0;
    int k0 = key0;
    int k1 = key1;
    for (int round = 0; round < 10; round++) {
      long p0 = M0 * (c0 & 0xffffffffL);
      long p1 = M1 * (c2 & 0xffffffffL);
      c0 = (int) (p1 >>> 32) ^ c1 ^ k0;
      c1 = (int) p1;
      c2 = (int) (p0 >>> 32) ^ c3 ^ k1;
      c3 = (int) p0;
      k0 += W0;
      k1 += W1;
    }
    even = ((long) c1 << 32) | (c0 & 0xffffffffL);
    odd = ((long) c3 << 32) | (c2 & 0xffffffffL);
  }

  /** Uniform in [0, 1) with 24 bits. */
  float nextFloat(long index) {
    return (bits(index) >>> 40) * 0x1p-24f;
  }

  /** Uniform in [0, 1) with 53 bits. */
  double nextDouble(long index) {
    return (bits(index) >>> 11) * 0x1p-53;
  }

  /** Standard normal, by the transform of Box and Muller. */
  double nextNormal(long index) {
    long b = bits(index);
    double u = ((b & 0xffffffffL) + 1) * 0x1p-32;
    double v = (b >>> 32) * 0x1p-32;
    return Math.sqrt(-2 * Math.log(u)) * Math.cos(2 * Math.PI * v);
  }
}
