package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;

/**
 * Accumulates a chunk of elements of several ranks in a Java array, where loops vectorise. Used by
 * one thread.
 */
abstract class Lanes {
  /** Elements of a chunk. */
  static final int CHUNK = 4096;

  /** Starts with the first rank's elements. */
  abstract void load(long address, int n);

  /** Adds the next rank's. */
  abstract void combine(long address, int n);

  /** Writes the result, rounded once. */
  abstract void store(long address, int n);

  /** The lanes for a dtype; as long as the longest chunk. */
  static Lanes of(DType dtype, ReduceOp op, int ranks, int length) {
    return switch (dtype) {
      case FLOAT64 -> new DoubleLanes(op, ranks, length);
      case FLOAT32 -> new FloatLanes(op, ranks, length);
      case FLOAT16, BFLOAT16 -> new HalfLanes(dtype, op, ranks, length);
      case BOOL -> new WordLanes(dtype, op, length);
      default ->
          switch (op.kind()) {
            case SUM, PRODUCT -> wrapping(dtype, op, length);
            default -> new WordLanes(dtype, op, length);
          };
    };
  }

  private static Lanes wrapping(DType dtype, ReduceOp op, int length) {
    return switch (dtype) {
      case INT64 -> new LongLanes(op, length);
      case INT32 -> new IntLanes(op, length);
      default -> new NarrowLanes(dtype, op, length);
    };
  }

  /**
   * Reduces the elements of several regions, in their order, into a target, which may be one of
   * them.
   *
   * @param sources addresses of equally many elements, one a rank
   */
  static void reduce(DType dtype, ReduceOp op, long[] sources, long numel, long target) {
    reduce(dtype, op, sources.length, sources, numel, target);
  }

  /**
   * Reduces regions that are already reductions of several ranks' elements.
   *
   * @param ranks of how many ranks, for a mean
   */
  static void reduce(DType dtype, ReduceOp op, int ranks, long[] sources, long numel, long target) {
    if (numel > 0) {
      int length = (int) Math.min(CHUNK, numel);
      of(dtype, op, ranks, length).reduce(dtype.byteSize(), length, sources, numel, target);
    }
  }

  /**
   * Reduces with these lanes.
   *
   * @param width bytes of an element
   * @param length the lanes' length
   */
  final void reduce(int width, int length, long[] sources, long numel, long target) {
    for (long at = 0; at < numel; at += length) {
      int n = (int) Math.min(length, numel - at);
      long offset = at * width;
      load(sources[0] + offset, n);
      for (int r = 1; r < sources.length; r++) {
        combine(sources[r] + offset, n);
      }
      store(target + offset, n);
    }
  }
}
