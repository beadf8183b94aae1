package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.memory.Memory;

/** int32, and int16, int8, uint8 and bool in int32. */
final class IntLanes extends Lanes {
  private final DType dtype;
  private final ReduceOp.Kind kind;
  private final int[] acc;
  private final int[] in;
  private final short[] shorts;
  private final byte[] bytes;

  IntLanes(DType dtype, ReduceOp op, int length) {
    this.dtype = dtype;
    this.kind = dtype == DType.BOOL ? logical(op) : op.kind();
    this.acc = new int[length];
    this.in = new int[length];
    this.shorts = new short[dtype == DType.INT16 ? length : 0];
    this.bytes = new byte[dtype.byteSize() == 1 ? length : 0];
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
    read(address, acc, n);
  }

  @Override
  void combine(long address, int n) {
    int[] a = acc;
    int[] b = in;
    read(address, b, n);
    switch (kind) {
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
      case BAND -> {
        for (int i = 0; i < n; i++) {
          a[i] &= b[i];
        }
      }
      case BOR -> {
        for (int i = 0; i < n; i++) {
          a[i] |= b[i];
        }
      }
      case BXOR -> {
        for (int i = 0; i < n; i++) {
          a[i] ^= b[i];
        }
      }
      default -> throw new IllegalArgumentException(kind + " does not work on " + dtype);
    }
  }

  @Override
  void store(long address, int n) {
    switch (dtype) {
      case INT32 -> Memory.put(address, acc, 0, n);
      case INT16 -> {
        for (int i = 0; i < n; i++) {
          shorts[i] = (short) acc[i];
        }
        Memory.put(address, shorts, 0, n);
      }
      default -> {
        for (int i = 0; i < n; i++) {
          bytes[i] = (byte) acc[i];
        }
        Memory.put(address, bytes, 0, n);
      }
    }
  }

  private void read(long address, int[] into, int n) {
    switch (dtype) {
      case INT32 -> Memory.get(address, into, 0, n);
      case INT16 -> {
        Memory.get(address, shorts, 0, n);
        for (int i = 0; i < n; i++) {
          into[i] = shorts[i];
        }
      }
      case UINT8 -> {
        Memory.get(address, bytes, 0, n);
        for (int i = 0; i < n; i++) {
          into[i] = bytes[i] & 0xff;
        }
      }
      case BOOL -> {
        Memory.get(address, bytes, 0, n);
        for (int i = 0; i < n; i++) {
          into[i] = bytes[i] != 0 ? 1 : 0;
        }
      }
      default -> {
        Memory.get(address, bytes, 0, n);
        for (int i = 0; i < n; i++) {
          into[i] = bytes[i];
        }
      }
    }
  }
}
