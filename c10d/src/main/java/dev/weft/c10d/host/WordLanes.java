package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.memory.Memory;

/**
 * Extrema and bitwise operations of whole numbers, and all operations of truth values, on as many
 * elements at a time as a word of 64 bits has fields for. Loops over words vectorise, those that
 * compare bytes, shorts or longs do not.
 */
final class WordLanes extends Lanes {
  // Fields are compared as in Lamport, "Multiple byte processing with full-word instructions",
  // 1975: a difference that leaves out the highest bits does not reach the next field.
  private static final long[] HIGH = {
    0x8080808080808080L, 0x8000800080008000L, 0x8000000080000000L, 0x8000000000000000L
  };

  private final ReduceOp.Kind kind;
  private final DType dtype;
  private final int width;
  private final int top;
  private final long high;
  private final long[] acc;
  private final long[] in;

  WordLanes(DType dtype, ReduceOp op, int length) {
    this.dtype = dtype;
    this.kind = dtype == DType.BOOL ? logical(op) : op.kind();
    this.width = dtype.byteSize();
    this.top = 8 * width - 1;
    this.high = HIGH[Integer.numberOfTrailingZeros(width)];
    int words = (length * width + Long.BYTES - 1) / Long.BYTES;
    this.acc = new long[words];
    this.in = new long[words];
  }

  /** On truth values everything is and, or, or exclusive or. */
  private static ReduceOp.Kind logical(ReduceOp op) {
    return switch (op.kind()) {
      case SUM, MAX, BOR -> ReduceOp.Kind.BOR;
      case PRODUCT, MIN, BAND -> ReduceOp.Kind.BAND;
      default -> op.kind();
    };
  }

  @Override
  void load(long address, int n) {
    int unused = read(address, acc, n);
  }

  @Override
  void combine(long address, int n) {
    long[] a = acc;
    long[] b = in;
    int words = read(address, b, n);
    switch (kind) {
      case MIN -> choose(a, b, words, high, unsigned(), top, -1);
      case MAX -> choose(a, b, words, high, unsigned(), top, 0);
      case BAND -> {
        for (int i = 0; i < words; i++) {
          a[i] &= b[i];
        }
      }
      case BOR -> {
        for (int i = 0; i < words; i++) {
          a[i] |= b[i];
        }
      }
      case BXOR -> {
        for (int i = 0; i < words; i++) {
          a[i] ^= b[i];
        }
      }
      default -> throw new IllegalArgumentException(kind + " does not work on " + dtype);
    }
  }

  /** What makes fields compare as numbers without sign. */
  private long unsigned() {
    return dtype == DType.UINT8 ? 0 : high;
  }

  /**
   * The larger of two fields each, or the smaller.
   *
   * @param high the fields' highest bits
   * @param flip bits that are turned for the comparison
   * @param top the number of a field's highest bit
   * @param smaller -1 for the smaller, 0 for the larger
   */
  private static void choose(
      long[] a, long[] b, int words, long high, long flip, int top, long smaller) {
    long low = ~high;
    for (int i = 0; i < words; i++) {
      long x = a[i] ^ flip;
      long y = b[i] ^ flip;
      // In the highest bit of each field: whether x is at least y.
      long difference = (x | high) - (y & low);
      long atLeast = ((x & ~y) | (~(x ^ y) & difference)) & high;
      long takesA = (atLeast | (atLeast - (atLeast >>> top))) ^ smaller;
      a[i] = (a[i] & takesA) | (b[i] & ~takesA);
    }
  }

  @Override
  void store(long address, int n) {
    int bytes = n * width;
    int whole = bytes / Long.BYTES;
    Memory.put(address, acc, 0, whole);
    for (int i = whole * Long.BYTES; i < bytes; i++) {
      Memory.putByte(address + i, (byte) (acc[whole] >>> (8 * (i % Long.BYTES))));
    }
  }

  /** Fills words with elements; those of the last word that are not there are zero. */
  private int read(long address, long[] into, int n) {
    int bytes = n * width;
    int whole = bytes / Long.BYTES;
    Memory.get(address, into, 0, whole);
    int words = whole;
    if (bytes % Long.BYTES != 0) {
      long last = 0;
      for (int i = whole * Long.BYTES; i < bytes; i++) {
        last |= (Memory.getByte(address + i) & 0xffL) << (8 * (i % Long.BYTES));
      }
      into[whole] = last;
      words++;
    }
    if (dtype == DType.BOOL) {
      toTruth(into, words);
    }
    return words;
  }

  /** One for every field that is not zero. */
  private static void toTruth(long[] words, int n) {
    for (int i = 0; i < n; i++) {
      long w = words[i];
      words[i] =
          ((((w & 0x7f7f7f7f7f7f7f7fL) + 0x7f7f7f7f7f7f7f7fL) | w) >>> 7) & 0x0101010101010101L;
    }
  }
}
