package dev.weft.nn;

import java.nio.charset.StandardCharsets;

/** SplitMix64 by name, as the reference runs use it. */
record SpecStream(long start) {
  static SpecStream of(long seed, String name) {
    long h = 0xcbf29ce484222325L;
    for (byte b : name.getBytes(StandardCharsets.UTF_8)) {
      h = (h ^ (b & 0xff)) * 0x100000001b3L;
    }
    return new SpecStream(seed ^ h);
  }

  long bits(long n) {
    long z = start + (n + 1) * 0x9e3779b97f4a7c15L;
    z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
    z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
    return z ^ (z >>> 31);
  }

  float sym(long n) {
    return ((bits(n) >>> 40) - (1 << 23)) * 0x1p-23f;
  }

  long below(long n, long bound) {
    return (bits(n) >>> 33) % bound;
  }

  float[] symmetric(int count, double scale) {
    float[] v = new float[count];
    for (int i = 0; i < count; i++) {
      v[i] = sym(i) * (float) scale;
    }
    return v;
  }
}
