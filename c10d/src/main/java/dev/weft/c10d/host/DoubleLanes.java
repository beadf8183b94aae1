package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.memory.Memory;

/** float64. */
final class DoubleLanes extends Lanes {
  private final ReduceOp op;
  private final int ranks;
  private final double[] acc;
  private final double[] in;

  DoubleLanes(ReduceOp op, int ranks, int length) {
    this.op = op;
    this.ranks = ranks;
    this.acc = new double[length];
    this.in = new double[length];
  }

  @Override
  void load(long address, int n) {
    Memory.get(address, acc, 0, n);
    scale(acc, n);
  }

  @Override
  void combine(long address, int n) {
    double[] a = acc;
    double[] b = in;
    Memory.get(address, b, 0, n);
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
        scale(b, n);
        for (int i = 0; i < n; i++) {
          a[i] += b[i];
        }
      }
    }
  }

  private void scale(double[] values, int n) {
    if (op.kind() == ReduceOp.Kind.PREMUL_SUM) {
      double factor = op.factor();
      for (int i = 0; i < n; i++) {
        values[i] *= factor;
      }
    }
  }

  @Override
  void store(long address, int n) {
    if (op.kind() == ReduceOp.Kind.AVG) {
      for (int i = 0; i < n; i++) {
        acc[i] /= ranks;
      }
    }
    Memory.put(address, acc, 0, n);
  }
}
