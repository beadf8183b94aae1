package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.cpu.HalfFloats;
import dev.weft.tensor.memory.Memory;

/** float32, and float16 and bfloat16 in float32. */
final class FloatLanes extends Lanes {
  private final DType dtype;
  private final ReduceOp op;
  private final int ranks;
  private final float[] acc;
  private final float[] in;
  private final short[] bits;

  FloatLanes(DType dtype, ReduceOp op, int ranks, int length) {
    this.dtype = dtype;
    this.op = op;
    this.ranks = ranks;
    this.acc = new float[length];
    this.in = new float[length];
    this.bits = new short[dtype == DType.FLOAT32 ? 0 : length];
  }

  @Override
  void load(long address, int n) {
    read(address, acc, n);
    scale(acc, n);
  }

  @Override
  void combine(long address, int n) {
    float[] a = acc;
    float[] b = in;
    read(address, b, n);
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

  private void scale(float[] values, int n) {
    if (op.kind() == ReduceOp.Kind.PREMUL_SUM) {
      float factor = (float) op.factor();
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
    switch (dtype) {
      case FLOAT16 -> {
        for (int i = 0; i < n; i++) {
          bits[i] = HalfFloats.toFloat16(acc[i]);
        }
        Memory.put(address, bits, 0, n);
      }
      case BFLOAT16 -> {
        for (int i = 0; i < n; i++) {
          bits[i] = HalfFloats.toBfloat16(acc[i]);
        }
        Memory.put(address, bits, 0, n);
      }
      default -> Memory.put(address, acc, 0, n);
    }
  }

  private void read(long address, float[] into, int n) {
    switch (dtype) {
      case FLOAT16 -> {
        Memory.get(address, bits, 0, n);
        for (int i = 0; i < n; i++) {
          into[i] = HalfFloats.fromFloat16(bits[i]);
        }
      }
      case BFLOAT16 -> {
        Memory.get(address, bits, 0, n);
        for (int i = 0; i < n; i++) {
          into[i] = HalfFloats.fromBfloat16(bits[i]);
        }
      }
      default -> Memory.get(address, into, 0, n);
    }
  }
}
