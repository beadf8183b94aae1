package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.memory.Memory;

/** Sums and products of int32. */
final class IntLanes extends Lanes {
  private final ReduceOp op;
  private final int[] acc;
  private final int[] in;

  IntLanes(ReduceOp op, int length) {
    this.op = op;
    this.acc = new int[length];
    this.in = new int[length];
  }

  @Override
  void load(long address, int n) {
    Memory.get(address, acc, 0, n);
  }

  @Override
  void combine(long address, int n) {
    int[] a = acc;
    int[] b = in;
    Memory.get(address, b, 0, n);
    switch (op.kind()) {
      case SUM -> {
        for (int i = 0; i < n; i++) {
          a[i] += b[i];
        }
      }
      case PRODUCT -> {
        for (int i = 0; i < n; i++) {
          a[i] *= b[i];
        }
      }
      default -> throw new IllegalArgumentException(op + " does not work on int32");
    }
  }

  @Override
  void store(long address, int n) {
    Memory.put(address, acc, 0, n);
  }
}
