package dev.weft.tensor.cpu;

/**
 * A thread's staging arrays. A kernel takes them at its start and must not call another kernel
 * while it uses them.
 */
final class Scratch {
  /** Elements of a chunk: a few of them fit into the first-level cache. */
  static final int CHUNK = 1024;

  private static final int SLOTS = 8;
  private static final int KEEP = 1 << 16;
  private static final ThreadLocal<Scratch> CURRENT = ThreadLocal.withInitial(Scratch::new);

  private final float[][] floats = new float[SLOTS][0];
  private final double[][] doubles = new double[SLOTS][0];
  private final long[][] longs = new long[SLOTS][0];
  private final int[][] ints = new int[SLOTS][0];

  private Scratch() {}

  /** This thread's. */
  static Scratch get() {
    return CURRENT.get();
  }

  /** A float array of at least {@code n} elements with arbitrary content. */
  float[] floats(int slot, int n) {
    float[] a = floats[slot];
    if (a.length < n) {
      a = new float[Math.max(n, CHUNK)];
      if (a.length <= KEEP) {
        floats[slot] = a;
      }
    }
    return a;
  }

  /** A double array of at least {@code n} elements with arbitrary content. */
  double[] doubles(int slot, int n) {
    double[] a = doubles[slot];
    if (a.length < n) {
      a = new double[Math.max(n, CHUNK)];
      if (a.length <= KEEP) {
        doubles[slot] = a;
      }
    }
    return a;
  }

  /** A long array of at least {@code n} elements with arbitrary content. */
  long[] longs(int slot, int n) {
    long[] a = longs[slot];
    if (a.length < n) {
      a = new long[Math.max(n, CHUNK)];
      if (a.length <= KEEP) {
        longs[slot] = a;
      }
    }
    return a;
  }

  /** An int array of at least {@code n} elements with arbitrary content. */
  int[] ints(int slot, int n) {
    int[] a = ints[slot];
    if (a.length < n) {
      a = new int[Math.max(n, CHUNK)];
      if (a.length <= KEEP) {
        ints[slot] = a;
      }
    }
    return a;
  }
}
