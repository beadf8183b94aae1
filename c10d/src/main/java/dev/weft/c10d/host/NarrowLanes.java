package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.memory.Memory;

/** Sums and products of int16, int8 and uint8, which wrap around. */
final class NarrowLanes extends Lanes {
  private final boolean product;
  private final boolean wide;
  private final short[] shortAcc;
  private final short[] shortIn;
  private final byte[] byteAcc;
  private final byte[] byteIn;

  NarrowLanes(DType dtype, ReduceOp op, int length) {
    this.product = op.kind() == ReduceOp.Kind.PRODUCT;
    this.wide = dtype == DType.INT16;
    this.shortAcc = new short[wide ? length : 0];
    this.shortIn = new short[wide ? length : 0];
    this.byteAcc = new byte[wide ? 0 : length];
    this.byteIn = new byte[wide ? 0 : length];
  }

  @Override
  void load(long address, int n) {
    if (wide) {
      Memory.get(address, shortAcc, 0, n);
    } else {
      Memory.get(address, byteAcc, 0, n);
    }
  }

  @Override
  void combine(long address, int n) {
    if (wide) {
      Memory.get(address, shortIn, 0, n);
      combine(shortAcc, shortIn, n);
    } else {
      Memory.get(address, byteIn, 0, n);
      combine(byteAcc, byteIn, n);
    }
  }

  private void combine(short[] a, short[] b, int n) {
    if (product) {
      for (int i = 0; i < n; i++) {
        a[i] = (short) (a[i] * b[i]);
      }
    } else {
      for (int i = 0; i < n; i++) {
        a[i] = (short) (a[i] + b[i]);
      }
    }
  }

  private void combine(byte[] a, byte[] b, int n) {
    if (product) {
      for (int i = 0; i < n; i++) {
        a[i] = (byte) (a[i] * b[i]);
      }
    } else {
      for (int i = 0; i < n; i++) {
        a[i] = (byte) (a[i] + b[i]);
      }
    }
  }

  @Override
  void store(long address, int n) {
    if (wide) {
      Memory.put(address, shortAcc, 0, n);
    } else {
      Memory.put(address, byteAcc, 0, n);
    }
  }
}
