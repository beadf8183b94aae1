package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.memory.Memory;

/** float32. */
final class FloatLanes extends Lanes {
  private final ReduceOp op;
  private final int ranks;
  private final float[] acc;
  private final float[] in;

  FloatLanes(ReduceOp op, int ranks, int length) {
    this.op = op;
    this.ranks = ranks;
    this.acc = new float[length];
    this.in = new float[length];
  }

  @Override
  void load(long address, int n) {
    Memory.get(address, acc, 0, n);
    scale(op, acc, n);
  }

  @Override
  void combine(long address, int n) {
    Memory.get(address, in, 0, n);
    scale(op, in, n);
    combine(op, acc, in, n);
  }

  @Override
  void store(long address, int n) {
    mean(op, acc, n, ranks);
    Memory.put(address, acc, 0, n);
  }

  /** Combines scaled elements. */
  static void combine(ReduceOp op, float[] a, float[] b, int n) {
    switch (op.kind()) {
      case PRODUCT -> {
        for (int i = 0; i < n; i++) {
          a[i] *= b[i];
        }
      }
      case MIN -> {
        for (int i = 0; i < n; i++) {
          a[i] = Math.min(a[i], b[i]);
        }
      }
      case MAX -> {
        for (int i = 0; i < n; i++) {
          a[i] = Math.max(a[i], b[i]);
        }
      }
      default -> {
        for (int i = 0; i < n; i++) {
          a[i] += b[i];
        }
      }
    }
  }

  /** Multiplies by the factor of a pre-multiplied sum. */
  static void scale(ReduceOp op, float[] values, int n) {
    if (op.kind() == ReduceOp.Kind.PREMUL_SUM) {
      float factor = (float) op.factor();
      for (int i = 0; i < n; i++) {
        values[i] *= factor;
      }
    }
  }

  /** Divides a mean's sum. */
  static void mean(ReduceOp op, float[] values, int n, int ranks) {
    if (op.kind() == ReduceOp.Kind.AVG) {
      for (int i = 0; i < n; i++) {
        values[i] /= ranks;
      }
    }
  }
}
