package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.cpu.HalfFloats;
import dev.weft.tensor.memory.Memory;

/**
 * A reduction by a library that knows less than {@link ReduceOp}: 16-bit elements go as float32 and
 * are rounded once, factors are applied before the sum and means are taken after it. Used once.
 */
final class Reduction {
  private static final int CHUNK = 4096;

  private final Staging staging;
  private final DType dtype;
  private final ReduceOp op;
  private final int ranks;

  Reduction(Staging staging, DType dtype, ReduceOp op, int ranks) {
    this.staging = staging;
    this.dtype = dtype;
    this.op = op;
    this.ranks = ranks;
  }

  /** What the library reduces. */
  DType dtype() {
    return isHalf() ? DType.FLOAT32 : dtype;
  }

  /** How the library reduces. */
  ReduceOp op() {
    return switch (op.kind()) {
      case AVG, PREMUL_SUM -> ReduceOp.SUM;
      default -> op;
    };
  }

  private boolean isHalf() {
    return dtype == DType.FLOAT16 || dtype == DType.BFLOAT16;
  }

  /**
   * The elements as the library takes them: the memory itself where nothing is to be changed.
   *
   * @param own the elements
   * @param inPlace whether they may be changed
   */
  Piece prepare(Piece own, boolean inPlace) {
    long n = own.bytes() / dtype.byteSize();
    boolean scaled = op.kind() == ReduceOp.Kind.PREMUL_SUM;
    if (!isHalf() && !scaled) {
      return own;
    }
    Piece to = isHalf() || !inPlace ? staging.block(n * dtype().byteSize()) : own;
    double factor = scaled ? op.factor() : 1;
    if (dtype == DType.FLOAT64) {
      scale(own.address(), to.address(), n, factor, 1);
      return to;
    }
    float[] values = new float[(int) Math.min(n, CHUNK)];
    for (long at = 0; at < n; at += CHUNK) {
      int m = (int) Math.min(CHUNK, n - at);
      read(own.address() + at * dtype.byteSize(), values, m);
      if (scaled) {
        for (int i = 0; i < m; i++) {
          values[i] *= (float) factor;
        }
      }
      Memory.put(to.address() + at * 4, values, 0, m);
    }
    return to;
  }

  /** Puts the library's result where it belongs, as the elements are kept. */
  void finish(Piece reduced, Piece target) {
    long n = target.bytes() / dtype.byteSize();
    boolean mean = op.kind() == ReduceOp.Kind.AVG;
    if (!isHalf() && !mean) {
      if (reduced.address() != target.address()) {
        Memory.copy(reduced.address(), target.address(), target.bytes());
      }
      return;
    }
    if (dtype == DType.FLOAT64) {
      scale(reduced.address(), target.address(), n, 1, ranks);
      return;
    }
    float[] values = new float[(int) Math.min(n, CHUNK)];
    for (long at = 0; at < n; at += CHUNK) {
      int m = (int) Math.min(CHUNK, n - at);
      Memory.get(reduced.address() + at * 4, values, 0, m);
      if (mean) {
        for (int i = 0; i < m; i++) {
          values[i] /= ranks;
        }
      }
      write(values, target.address() + at * dtype.byteSize(), m);
    }
  }

  private static void scale(long from, long to, long n, double factor, double divisor) {
    for (long i = 0; i < n; i++) {
      Memory.putDouble(to + 8 * i, Memory.getDouble(from + 8 * i) * factor / divisor);
    }
  }

  private void read(long address, float[] into, int n) {
    if (!isHalf()) {
      Memory.get(address, into, 0, n);
      return;
    }
    for (int i = 0; i < n; i++) {
      short bits = Memory.getShort(address + 2L * i);
      into[i] =
          dtype == DType.FLOAT16 ? HalfFloats.fromFloat16(bits) : HalfFloats.fromBfloat16(bits);
    }
  }

  private void write(float[] values, long address, int n) {
    if (!isHalf()) {
      Memory.put(address, values, 0, n);
      return;
    }
    for (int i = 0; i < n; i++) {
      short bits =
          dtype == DType.FLOAT16
              ? HalfFloats.toFloat16(values[i])
              : HalfFloats.toBfloat16(values[i]);
      Memory.putShort(address + 2L * i, bits);
    }
  }
}
