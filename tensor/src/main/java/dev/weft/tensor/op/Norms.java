package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.NormKernels;
import dev.weft.tensor.cuda.CudaNorms;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Normalisation over the trailing dimensions, whose sizes are attribute 0; attribute 1 is epsilon.
 * Gradients of the input and of the weight are operators of their own, so that they can be computed
 * apart. Any thread.
 */
public final class Norms {
  private Norms() {}

  private static void check(String op, Tensor[] in, Attrs a) {
    Check.floating(op, "input", in[0]);
    long[] shape = a.longsAt(0);
    long[] s = in[0].shape();
    int lead = s.length - shape.length;
    if (shape.length == 0
        || lead < 0
        || !Arrays.equals(s, lead, s.length, shape, 0, shape.length)) {
      throw Check.bad(
          op,
          "input has shape "
              + Arrays.toString(s)
              + "; expected it to end with normalized_shape "
              + Arrays.toString(shape));
    }
    for (int i = 1; i < in.length; i++) {
      Check.sameShape(op, i == 1 ? "weight" : "bias", in[i], shape);
    }
    Check.sameDType(op, in);
  }

  private static int size(Attrs a) {
    return Math.toIntExact(dev.weft.tensor.Shapes.numel(a.longsAt(0)));
  }

  private static @Nullable StridedTensor at(StridedTensor[] in, int i) {
    return i < in.length ? in[i] : null;
  }

  private static double eps(Tensor x, Attrs a) {
    if (!a.isNull(1)) {
      return a.doubleAt(1);
    }
    return switch (x.dtype()) {
      case FLOAT64 -> 0x1p-52;
      case FLOAT16 -> 0x1p-10;
      case BFLOAT16 -> 0x1p-7;
      default -> 0x1p-23;
    };
  }

  private static final Op RMS_NORM_BACKWARD =
      Op.function(
              "rms_norm_backward",
              (in, a) -> TensorSpec.one(in[1].shape(), in[1].dtype()),
              (in, out, a) ->
                  NormKernels.rmsBackward(in[0], in[1], at(in, 2), out[0], size(a), eps(in[1], a)))
          .cuda(
              (in, out, a) ->
                  CudaNorms.backward(
                      false, in[0], in[1], at(in, 2), out[0], size(a), eps(in[1], a)))
          .notDifferentiable();

  private static final Op RMS_NORM_WEIGHT_BACKWARD =
      Op.function(
              "rms_norm_weight_backward",
              (in, a) -> TensorSpec.one(a.longsAt(0), in[1].dtype()),
              (in, out, a) ->
                  NormKernels.rmsWeightBackward(in[0], in[1], out[0], size(a), eps(in[1], a)))
          .cuda(
              (in, out, a) ->
                  CudaNorms.weightBackward(false, in[0], in[1], out[0], size(a), eps(in[1], a)))
          .notDifferentiable();

  private static final Op RMS_NORM =
      Op.function(
              "rms_norm",
              (in, a) -> {
                check("rms_norm", in, a);
                DType dtype = a.isNull(2) ? in[0].dtype() : a.get(2, DType.class);
                if (!dtype.isFloatingPoint()) {
                  throw Check.bad(
                      "rms_norm",
                      "dtype " + dtype + " of the result; expected a floating-point one");
                }
                return TensorSpec.one(in[0].shape(), dtype);
              },
              (in, out, a) -> NormKernels.rms(in[0], at(in, 1), out[0], size(a), eps(in[0], a)))
          .cuda(
              (in, out, a) ->
                  CudaNorms.forward(false, in[0], at(in, 1), null, out[0], size(a), eps(in[0], a)))
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) -> {
                    @Nullable Tensor[] result = new @Nullable Tensor[ctx.inputCount()];
                    Tensor x = ctx.input(0);
                    if (ctx.needs(0)) {
                      result[0] =
                          result.length > 1
                              ? Dispatcher.call(RMS_NORM_BACKWARD, ctx.attrs(), g, x, ctx.input(1))
                              : Dispatcher.call(RMS_NORM_BACKWARD, ctx.attrs(), g, x);
                    }
                    if (result.length > 1 && ctx.needs(1)) {
                      result[1] = Dispatcher.call(RMS_NORM_WEIGHT_BACKWARD, ctx.attrs(), g, x);
                    }
                    return result;
                  }));

  private static final Op LAYER_NORM_BACKWARD =
      Op.function(
              "layer_norm_backward",
              (in, a) -> TensorSpec.one(in[1].shape(), in[1].dtype()),
              (in, out, a) ->
                  NormKernels.layerBackward(
                      in[0], in[1], at(in, 2), out[0], size(a), a.doubleAt(1)))
          .cuda(
              (in, out, a) ->
                  CudaNorms.backward(true, in[0], in[1], at(in, 2), out[0], size(a), a.doubleAt(1)))
          .notDifferentiable();

  private static final Op LAYER_NORM_WEIGHT_BACKWARD =
      Op.function(
              "layer_norm_weight_backward",
              (in, a) -> TensorSpec.one(a.longsAt(0), in[1].dtype()),
              (in, out, a) ->
                  NormKernels.layerWeightBackward(in[0], in[1], out[0], size(a), a.doubleAt(1)))
          .cuda(
              (in, out, a) ->
                  CudaNorms.weightBackward(true, in[0], in[1], out[0], size(a), a.doubleAt(1)))
          .notDifferentiable();

  private static final Op LAYER_NORM =
      Op.function(
              "layer_norm",
              (in, a) -> {
                check("layer_norm", in, a);
                return TensorSpec.one(in[0].shape(), in[0].dtype());
              },
              (in, out, a) ->
                  NormKernels.layer(in[0], at(in, 1), at(in, 2), out[0], size(a), a.doubleAt(1)))
          .cuda(
              (in, out, a) ->
                  CudaNorms.forward(
                      true, in[0], at(in, 1), at(in, 2), out[0], size(a), a.doubleAt(1)))
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) -> {
                    @Nullable Tensor[] result = new @Nullable Tensor[ctx.inputCount()];
                    Tensor x = ctx.input(0);
                    if (ctx.needs(0)) {
                      result[0] =
                          result.length > 1
                              ? Dispatcher.call(
                                  LAYER_NORM_BACKWARD, ctx.attrs(), g, x, ctx.input(1))
                              : Dispatcher.call(LAYER_NORM_BACKWARD, ctx.attrs(), g, x);
                    }
                    if (result.length > 1 && ctx.needs(1)) {
                      result[1] = Dispatcher.call(LAYER_NORM_WEIGHT_BACKWARD, ctx.attrs(), g, x);
                    }
                    if (result.length > 2 && ctx.needs(2)) {
                      result[2] = Reductions.sumToSize(g, ctx.inputShape(2));
                    }
                    return result;
                  }));

  /**
   * x / sqrt(mean(x^2) + eps) * weight over the trailing dimensions; Zhang and Sennrich,
   * arXiv:1910.07467.
   *
   * @param weight of shape {@code normalizedShape}, or null for ones
   * @param eps null for the machine epsilon of the dtype
   */
  public static Tensor rmsNorm(
      Tensor x, long[] normalizedShape, @Nullable Tensor weight, @Nullable Double eps) {
    return rmsNorm(Attrs.of(normalizedShape, eps), x, weight);
  }

  /**
   * The same with a result of another floating-point dtype, rounded once: what a mixed-precision
   * model hands to its matrix products from a float32 residual stream.
   */
  public static Tensor rmsNorm(
      Tensor x,
      long[] normalizedShape,
      @Nullable Tensor weight,
      @Nullable Double eps,
      DType resultDType) {
    return rmsNorm(Attrs.of(normalizedShape, eps, resultDType), x, weight);
  }

  private static Tensor rmsNorm(Attrs a, Tensor x, @Nullable Tensor weight) {
    return weight == null
        ? Dispatcher.call(RMS_NORM, a, x)
        : Dispatcher.call(RMS_NORM, a, x, weight);
  }

  /**
   * (x - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions; Ba, Kiros and
   * Hinton, arXiv:1607.06450.
   *
   * @param weight of shape {@code normalizedShape}, or null for ones
   * @param bias of the same shape, or null for zeros; needs a weight
   */
  public static Tensor layerNorm(
      Tensor x,
      long[] normalizedShape,
      @Nullable Tensor weight,
      @Nullable Tensor bias,
      double eps) {
    Attrs a = Attrs.of(normalizedShape, eps);
    if (weight == null) {
      if (bias != null) {
        throw Check.bad("layer_norm", "bias is given without a weight; pass ones as weight");
      }
      return Dispatcher.call(LAYER_NORM, a, x);
    }
    return bias == null
        ? Dispatcher.call(LAYER_NORM, a, x, weight)
        : Dispatcher.call(LAYER_NORM, a, x, weight, bias);
  }
}
