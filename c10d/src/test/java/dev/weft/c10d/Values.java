package dev.weft.c10d;

import dev.weft.tensor.DType;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.cpu.Elements;
import java.util.stream.LongStream;

/** Test tensors of any dtype and layout whose elements all differ between ranks and positions. */
final class Values {
  private Values() {}

  /** A small number that depends on rank and position, exact in every dtype. */
  static long of(int rank, long position, DType dtype) {
    long v = (rank * 7L + position * 3 + position / 5) % 11 + 1;
    return switch (dtype) {
      case BOOL -> v % 2;
      case UINT8 -> v;
      default -> position % 3 == 0 ? -v : v;
    };
  }

  static StridedTensor tensor(int rank, DType dtype, long... shape) {
    return fill(Tensors.empty(dtype, shape), rank);
  }

  /** The same values with the dimensions in memory reversed and gaps between elements. */
  static StridedTensor strided(int rank, DType dtype, long... shape) {
    return fill(stridedEmpty(dtype, shape), rank);
  }

  static StridedTensor stridedEmpty(DType dtype, long... shape) {
    long[] strides = new long[shape.length];
    long step = 2;
    for (int i = 0; i < shape.length; i++) {
      strides[i] = step;
      step *= Math.max(1, shape[i]);
    }
    StridedTensor room = Tensors.empty(dtype, step + 3);
    return new StridedTensor(room.storage(), dtype, shape, strides, 3);
  }

  private static StridedTensor fill(StridedTensor t, int rank) {
    for (long i = 0; i < t.numel(); i++) {
      put(t, i, of(rank, i, t.dtype()));
    }
    return t;
  }

  static void put(StridedTensor t, long position, double value) {
    Elements.putDouble(t.dtype(), address(t, position), value);
  }

  static double get(StridedTensor t, long position) {
    return Elements.getDouble(t.dtype(), address(t, position));
  }

  static double[] all(StridedTensor t) {
    return LongStream.range(0, t.numel()).mapToDouble(i -> get(t, i)).toArray();
  }

  private static long address(StridedTensor t, long position) {
    long rest = position;
    long at = 0;
    for (int d = t.ndim() - 1; d >= 0; d--) {
      at += rest % t.shape()[d] * t.strides()[d];
      rest /= t.shape()[d];
    }
    return t.dataAddress() + at * t.dtype().byteSize();
  }

  /** What a reduction over ranks gives for one position, in plain Java, before rounding. */
  static double reduced(ReduceOp op, DType dtype, int ranks, long position) {
    double acc = of(0, position, dtype);
    for (int r = 1; r < ranks; r++) {
      double v = of(r, position, dtype);
      acc =
          switch (op.kind()) {
            case SUM, AVG, PREMUL_SUM -> acc + v;
            case PRODUCT -> acc * v;
            case MIN -> Math.min(acc, v);
            case MAX -> Math.max(acc, v);
            case BAND -> (long) acc & (long) v;
            case BOR -> (long) acc | (long) v;
            case BXOR -> (long) acc ^ (long) v;
          };
    }
    return switch (op.kind()) {
      case AVG -> acc / ranks;
      case PREMUL_SUM -> acc * op.factor();
      default -> acc;
    };
  }

  /** A number as the dtype holds it: rounded, wrapped or a truth value. */
  static double inDType(double value, DType dtype) {
    StridedTensor one = Tensors.empty(dtype, 1);
    put(one, 0, value);
    return get(one, 0);
  }

  static long numel(long... shape) {
    return Shapes.numel(shape);
  }
}
