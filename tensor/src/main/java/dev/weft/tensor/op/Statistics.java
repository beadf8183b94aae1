package dev.weft.tensor.op;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.ReduceKernels;
import dev.weft.tensor.cuda.CudaReduce;

/**
 * Variances and norms. Attributes are as in {@link Reductions}; attribute 2 is the correction or
 * the order. Any thread.
 */
public final class Statistics {
  private Statistics() {}

  private static Op variance(String name, boolean root) {
    return Op.function(
            name,
            (in, a) -> {
              Check.floating(name, "input", in[0]);
              return TensorSpec.one(Reduced.reducedShape(name, in[0], a), in[0].dtype());
            },
            (in, out, a) ->
                ReduceKernels.variance(in[0], out[0], Reduced.dims(in[0], a), a.doubleAt(2), root))
        .cuda(
            (in, out, a) ->
                (root ? CudaReduce.STD : CudaReduce.VAR)
                    .run(in[0], out[0], Reduced.dims(in[0], a), a.doubleAt(2)))
        .gradient(
            Op.Saves.BOTH,
            Grads.unary(
                (ctx, g) -> {
                  Tensor x = ctx.input(0);
                  int[] dims = Reduced.dims(x, ctx.attrs());
                  boolean keep = ctx.attrs().boolAt(1);
                  double n = Math.max(0, Reduced.count(x.shape(), dims) - ctx.attrs().doubleAt(2));
                  Tensor scale = Pointwise.mul(g, root ? 1 / n : 2 / n);
                  if (root) {
                    // The slope at a deviation of 0 counts as 0.
                    scale =
                        Compare.maskedFill(
                            Pointwise.div(scale, ctx.output(0)), Compare.eq(ctx.output(0), 0), 0);
                  }
                  Tensor centred = Pointwise.sub(x, Reductions.mean(x, dims, true));
                  return Pointwise.mul(
                      centred, keep ? scale : Reduced.restore(scale, x.shape(), dims));
                }));
  }

  private static final Op VAR = variance("var", false);
  private static final Op STD = variance("std", true);

  private static final Op VECTOR_NORM =
      Op.function(
              "vector_norm",
              (in, a) -> {
                Check.floating("vector_norm", "input", in[0]);
                return TensorSpec.one(Reduced.reducedShape("vector_norm", in[0], a), in[0].dtype());
              },
              (in, out, a) ->
                  ReduceKernels.norm(in[0], out[0], Reduced.dims(in[0], a), a.doubleAt(2)))
          .cuda(
              (in, out, a) ->
                  CudaReduce.norm(a.doubleAt(2))
                      .run(in[0], out[0], Reduced.dims(in[0], a), a.doubleAt(2)))
          .gradient(
              Op.Saves.BOTH,
              Grads.unary(
                  (ctx, g) -> {
                    Tensor x = ctx.input(0);
                    int[] dims = Reduced.dims(x, ctx.attrs());
                    boolean keep = ctx.attrs().boolAt(1);
                    Tensor y =
                        keep ? ctx.output(0) : Reduced.restore(ctx.output(0), x.shape(), dims);
                    Tensor h = keep ? g : Reduced.restore(g, x.shape(), dims);
                    return normGradient(x, y, h, dims, ctx.attrs().doubleAt(2));
                  }));

  private static Tensor normGradient(Tensor x, Tensor y, Tensor g, int[] dims, double p) {
    if (p == 0) {
      return Creation.zerosLike(x);
    }
    if (p == 1) {
      return Pointwise.mul(Unary.sign(x), g);
    }
    if (Double.isInfinite(p)) {
      Tensor mask = Casts.to(Compare.eq(Unary.abs(x), y), x.dtype());
      Tensor share = Pointwise.div(g, Reductions.sum(mask, dims, true));
      return Pointwise.mul(Pointwise.mul(Unary.sign(x), mask), share);
    }
    Tensor zero = Compare.eq(y, 0);
    if (p == 2) {
      return Pointwise.mul(x, Compare.maskedFill(Pointwise.div(g, y), zero, 0));
    }
    Tensor powers = Pointwise.mul(Unary.sign(x), Pointwise.pow(Unary.abs(x), p - 1));
    Tensor scale = Pointwise.div(g, Pointwise.pow(y, p - 1));
    return Pointwise.mul(powers, Compare.maskedFill(scale, zero, 0));
  }

  /** The variance with divisor n - correction (1 is the unbiased estimate). */
  public static Tensor var(Tensor x, int[] dims, double correction, boolean keepDim) {
    return Dispatcher.call(
        VAR, Attrs.of(Check.dims("var", dims, x.ndim()), keepDim, correction), x);
  }

  /** The standard deviation with divisor n - correction. */
  public static Tensor std(Tensor x, int[] dims, double correction, boolean keepDim) {
    return Dispatcher.call(
        STD, Attrs.of(Check.dims("std", dims, x.ndim()), keepDim, correction), x);
  }

  /** The p-norm of the elements as a vector; p may be infinite, or 0 for the count of non-zeros. */
  public static Tensor vectorNorm(Tensor x, double p, int[] dims, boolean keepDim) {
    return Dispatcher.call(
        VECTOR_NORM, Attrs.of(Check.dims("vector_norm", dims, x.ndim()), keepDim, p), x);
  }

  /** The 2-norm of all elements. */
  public static Tensor norm(Tensor x) {
    return vectorNorm(x, 2, new int[0], false);
  }
}
