package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.memory.Memory;

/**
 * float16 and bfloat16, in float32. Two elements are taken from a word at a time and go on in
 * arrays of their own, all in loops without a branch, which vectorise.
 */
final class HalfLanes extends Lanes {
  private static final int SIGN = 0x8000;
  private static final int INFINITY = 0x7f800000;

  private final boolean brain;
  private final ReduceOp op;
  private final int ranks;
  private final int[] words;
  private final Side low;
  private final Side high;

  HalfLanes(DType dtype, ReduceOp op, int ranks, int length) {
    this.brain = dtype == DType.BFLOAT16;
    this.op = op;
    this.ranks = ranks;
    int half = (length + 1) / 2;
    this.words = new int[half];
    this.low = new Side(half);
    this.high = new Side(half);
  }

  /** The lower or the upper elements of all words. */
  private static final class Side {
    final float[] acc;
    final float[] in;
    final int[] bits;
    final int[] signs;

    Side(int length) {
      acc = new float[length];
      in = new float[length];
      bits = new int[length];
      signs = new int[length];
    }
  }

  @Override
  void load(long address, int n) {
    int half = read(address, n);
    widen(low, low.acc, half);
    widen(high, high.acc, half);
  }

  @Override
  void combine(long address, int n) {
    int half = read(address, n);
    widen(low, low.in, half);
    widen(high, high.in, half);
    FloatLanes.combine(op, low.acc, low.in, half);
    FloatLanes.combine(op, high.acc, high.in, half);
  }

  @Override
  void store(long address, int n) {
    int half = (n + 1) / 2;
    narrow(low, half);
    narrow(high, half);
    int[] a = low.bits;
    int[] b = high.bits;
    for (int i = 0; i < half; i++) {
      words[i] = (a[i] & 0xffff) | (b[i] << 16);
    }
    Memory.put(address, words, 0, n / 2);
    if ((n & 1) != 0) {
      Memory.putShort(address + 2L * (n - 1), (short) words[n / 2]);
    }
  }

  /** Puts the elements' bits into the upper halves of words. */
  private int read(long address, int n) {
    Memory.get(address, words, 0, n / 2);
    if ((n & 1) != 0) {
      words[n / 2] = Memory.getShort(address + 2L * (n - 1)) & 0xffff;
    }
    int half = (n + 1) / 2;
    int[] a = low.bits;
    int[] b = high.bits;
    for (int i = 0; i < half; i++) {
      a[i] = words[i] << 16;
      b[i] = words[i] & 0xffff0000;
    }
    return half;
  }

  private void widen(Side side, float[] into, int n) {
    if (!brain) {
      fromFloat16(side, into, n);
    }
    Memory.bits(side.bits, into, n);
    FloatLanes.scale(op, into, n);
  }

  /** A float16's exponent is 112 less; a product puts that right for subnormal numbers, too. */
  private static void fromFloat16(Side side, float[] scratch, int n) {
    int[] bits = side.bits;
    int[] signs = side.signs;
    for (int i = 0; i < n; i++) {
      int h = bits[i] >>> 16;
      int abs = h & 0x7fff;
      // All ones where it is infinite or no number, whose exponent is the highest in float32, too.
      int special = (0x7bff - abs) >> 31;
      signs[i] = ((h & SIGN) << 16) | (special & INFINITY);
      bits[i] = abs << 13;
    }
    Memory.bits(bits, scratch, n);
    for (int i = 0; i < n; i++) {
      scratch[i] *= 0x1p112f;
    }
    Memory.bits(scratch, bits, n);
    for (int i = 0; i < n; i++) {
      bits[i] |= signs[i];
    }
  }

  private void narrow(Side side, int n) {
    FloatLanes.mean(op, side.acc, n, ranks);
    int[] bits = side.bits;
    Memory.bits(side.acc, bits, n);
    if (brain) {
      for (int i = 0; i < n; i++) {
        int b = bits[i];
        int nan = (INFINITY - (b & 0x7fffffff)) >> 31;
        int rounded = (b + 0x7fff + ((b >>> 16) & 1)) >>> 16;
        int quiet = (b >>> 16) | 0x40;
        bits[i] = (rounded & ~nan) | (quiet & nan);
      }
    } else {
      toFloat16(side, n);
    }
  }

  private static void toFloat16(Side side, int n) {
    int[] bits = side.bits;
    int[] signs = side.signs;
    float[] small = side.in;
    for (int i = 0; i < n; i++) {
      signs[i] = bits[i] & 0x7fffffff;
    }
    // Adding 0.5 leaves a subnormal's mantissa in the lowest bits, rounded to nearest even.
    Memory.bits(signs, small, n);
    for (int i = 0; i < n; i++) {
      small[i] = small[i] + 0.5f;
    }
    Memory.bits(small, signs, n);
    for (int i = 0; i < n; i++) {
      int b = bits[i];
      int abs = b & 0x7fffffff;
      int subnormal = (abs - 0x38800000) >> 31;
      int large = (0x477fefff - abs) >> 31;
      int nan = (INFINITY - abs) >> 31;
      int normal = (abs - 0x38000000 + 0xfff + ((abs >>> 13) & 1)) >>> 13;
      int finite = (normal & ~subnormal) | ((signs[i] - 0x3f000000) & subnormal);
      int special = 0x7c00 | (nan & 0x200);
      bits[i] = ((b >>> 16) & SIGN) | (finite & ~large) | (special & large);
    }
  }
}
