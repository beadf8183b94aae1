package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.cpu.FillKernels;
import dev.weft.tensor.cuda.CudaFills;

/** Operators that make tensors of given values. Any thread. */
public final class Creation {
  private Creation() {}

  private static final Op FULL_LIKE =
      Op.function(
              "full_like",
              (in, a) ->
                  TensorSpec.one(
                      in[0].shape(), a.isNull(1) ? in[0].dtype() : a.get(1, DType.class)),
              (in, out, a) -> FillKernels.fill(out[0], a.get(0, Number.class)))
          .cuda((in, out, a) -> CudaFills.fill(out[0], a.get(0, Number.class)))
          .notDifferentiable();

  private static final Op ARANGE =
      Op.inPlace(
              "arange_",
              (in, a) -> TensorSpec.one(in[0].shape(), in[0].dtype()),
              (in, out, a) ->
                  FillKernels.arange(out[0], a.get(0, Number.class), a.get(1, Number.class)))
          .cuda(
              (in, out, a) ->
                  CudaFills.arange(out[0], a.get(0, Number.class), a.get(1, Number.class)))
          .notDifferentiable();

  /** A tensor of the same shape, dtype, device and layout over ranks, filled with a value. */
  public static Tensor fullLike(Tensor like, Number value) {
    return Dispatcher.call(FULL_LIKE, Attrs.of(value, null), like);
  }

  /** The same with another dtype. */
  public static Tensor fullLike(Tensor like, Number value, DType dtype) {
    return Dispatcher.call(FULL_LIKE, Attrs.of(value, dtype), like);
  }

  /** Zeros of the same shape, dtype, device and layout over ranks. */
  public static Tensor zerosLike(Tensor like) {
    return fullLike(like, 0);
  }

  /** Ones of the same shape, dtype, device and layout over ranks. */
  public static Tensor onesLike(Tensor like) {
    return fullLike(like, 1);
  }

  /** A tensor filled with a value. */
  public static StridedTensor full(Number value, DType dtype, Device device, long... shape) {
    StridedTensor t = Tensors.empty(dtype, device, shape);
    return (StridedTensor) InPlace.fill(t, value);
  }

  /** A CPU tensor of zeros. */
  public static StridedTensor zeros(DType dtype, long... shape) {
    return full(0, dtype, Device.CPU, shape);
  }

  /** A CPU tensor of ones. */
  public static StridedTensor ones(DType dtype, long... shape) {
    return full(1, dtype, Device.CPU, shape);
  }

  /** A CPU vector of start, start + 1, ... before end. */
  public static StridedTensor arange(Number start, Number end, DType dtype) {
    return arange(start, end, 1, dtype);
  }

  /** A CPU vector of start, start + step, ... before end. */
  public static StridedTensor arange(Number start, Number end, Number step, DType dtype) {
    return (StridedTensor) arange(Tensors.empty(dtype, arangeSize(start, end, step)), start, step);
  }

  /** Fills a plain vector, of any device, with start, start + step, ... */
  public static Tensor arange(StridedTensor vector, Number start, Number step) {
    return Dispatcher.call(ARANGE, Attrs.of(start, step), vector);
  }

  /** How many of start, start + step, ... come before end. */
  public static long arangeSize(Number start, Number end, Number step) {
    double s = step.doubleValue();
    if (s == 0 || Double.isNaN(s)) {
      throw Check.bad("arange", "step " + step + "; expected a number other than 0");
    }
    double size = Math.ceil((end.doubleValue() - start.doubleValue()) / s);
    if (!(size >= 0)) {
      throw Check.bad(
          "arange", "end " + end + " cannot be reached from " + start + " by steps of " + step);
    }
    return (long) size;
  }

  /** A CPU matrix with ones on the diagonal. */
  public static StridedTensor eye(DType dtype, long rows, long columns) {
    StridedTensor t = zeros(dtype, rows, columns);
    long n = Math.min(rows, columns);
    if (n > 0) {
      Tensor unused =
          InPlace.fill(t.withLayout(new long[] {n}, new long[] {columns + 1}, t.offset()), 1);
    }
    return t;
  }
}
