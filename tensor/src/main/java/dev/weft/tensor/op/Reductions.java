package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.ReduceKernels;
import dev.weft.tensor.cpu.SoftmaxKernels;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Sums, means and norms over dimensions. No dimensions means all; attribute 0 of the operators is
 * the array of dimensions, attribute 1 says whether they stay with size 1. Any thread.
 */
public final class Reductions {
  private Reductions() {}

  static long[] reducedShape(String op, Tensor x, Attrs a) {
    int[] dims = Check.dims(op, a.intsAt(0), x.ndim());
    return reducedShape(x.shape(), dims, a.boolAt(1));
  }

  static long[] reducedShape(long[] shape, int[] dims, boolean keep) {
    boolean[] reduced = new boolean[shape.length];
    for (int d : dims) {
      reduced[d] = true;
    }
    long[] out = new long[keep ? shape.length : shape.length - dims.length];
    int n = 0;
    for (int i = 0; i < shape.length; i++) {
      if (!reduced[i]) {
        out[n++] = shape[i];
      } else if (keep) {
        out[n++] = 1;
      }
    }
    return out;
  }

  static int[] dims(Tensor x, Attrs a) {
    return Check.dims("dims", a.intsAt(0), x.ndim());
  }

  /** How many elements go into one result. */
  static long count(long[] shape, int[] dims) {
    long n = 1;
    for (int d : dims) {
      n *= shape[d];
    }
    return n;
  }

  /** A gradient of the reduced shape, with the reduced dimensions back and repeated. */
  static Tensor spread(Tensor g, long[] shape, int[] dims, boolean keep) {
    return Views.expand(keep ? g : restore(g, shape, dims), shape);
  }

  private static Tensor restore(Tensor g, long[] shape, int[] dims) {
    return shape.length == g.ndim() ? g : Views.reshape(g, reducedShape(shape, dims, true));
  }

  private static final Op SUM =
      Op.function(
              "sum",
              (in, a) ->
                  TensorSpec.one(
                      reducedShape("sum", in[0], a),
                      in[0].dtype().isFloatingPoint() ? in[0].dtype() : DType.INT64),
              (in, out, a) -> ReduceKernels.sum(in[0], out[0], dims(in[0], a), 1))
          .gradient(
              Op.Saves.NOTHING,
              Grads.unary(
                  (ctx, g) -> {
                    long[] shape = ctx.inputShape(0);
                    int[] dims = Check.dims("sum", ctx.attrs().intsAt(0), shape.length);
                    return spread(g, shape, dims, ctx.attrs().boolAt(1));
                  }));

  private static final Op MEAN =
      Op.function(
              "mean",
              (in, a) -> {
                Check.floating("mean", "input", in[0]);
                return TensorSpec.one(reducedShape("mean", in[0], a), in[0].dtype());
              },
              (in, out, a) -> {
                int[] dims = dims(in[0], a);
                ReduceKernels.sum(in[0], out[0], dims, (double) count(in[0].shape(), dims));
              })
          .gradient(
              Op.Saves.NOTHING,
              Grads.unary(
                  (ctx, g) -> {
                    long[] shape = ctx.inputShape(0);
                    int[] dims = Check.dims("mean", ctx.attrs().intsAt(0), shape.length);
                    Tensor scaled = Pointwise.div(g, count(shape, dims));
                    return spread(scaled, shape, dims, ctx.attrs().boolAt(1));
                  }));

  private static final Op SUM_TO_SIZE =
      Op.function(
              "sum_to_size",
              (in, a) -> TensorSpec.one(a.longsAt(0), in[0].dtype()),
              (in, out, a) ->
                  ReduceKernels.sum(in[0], out[0], broadcastDims(in[0].shape(), a.longsAt(0)), 1))
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> Views.expand(g, ctx.inputShape(0))));

  /** The dimensions along which a shape was repeated to get a larger one. */
  private static int[] broadcastDims(long[] from, long[] to) {
    int lead = from.length - to.length;
    int[] dims = new int[from.length];
    int n = 0;
    for (int i = 0; i < from.length; i++) {
      if (i < lead || (to[i - lead] == 1 && from[i] != 1)) {
        dims[n++] = i;
      }
    }
    return Arrays.copyOf(dims, n);
  }

  private static Op extremum(String name, boolean max) {
    return Op.function(
            name,
            (in, a) -> {
              notEmpty(name, in[0], a);
              return TensorSpec.one(reducedShape(name, in[0], a), in[0].dtype());
            },
            (in, out, a) -> ReduceKernels.extremum(in[0], out[0], dims(in[0], a), max))
        .gradient(
            Op.Saves.BOTH,
            Grads.unary(
                (ctx, g) -> {
                  // The gradient is shared evenly among equal extrema.
                  Tensor x = ctx.input(0);
                  int[] dims = dims(x, ctx.attrs());
                  boolean keep = ctx.attrs().boolAt(1);
                  Tensor best = keep ? ctx.output(0) : restore(ctx.output(0), x.shape(), dims);
                  Tensor mask = Casts.to(Compare.eq(x, best), g.dtype());
                  Tensor share = keep ? g : restore(g, x.shape(), dims);
                  share = Pointwise.div(share, sum(mask, dims, true));
                  return Pointwise.mul(mask, share);
                }));
  }

  private static void notEmpty(String op, Tensor x, Attrs a) {
    int[] dims = Check.dims(op, a.intsAt(0), x.ndim());
    if (count(x.shape(), dims) == 0) {
      throw Check.bad(
          op,
          "input of shape "
              + Arrays.toString(x.shape())
              + " has no elements along dims "
              + Arrays.toString(dims)
              + "; expected at least one");
    }
  }

  private static final Op AMAX = extremum("amax", true);
  private static final Op AMIN = extremum("amin", false);

  private static Op extremumWithIndex(String name, boolean max) {
    return Op.function(
            name,
            (in, a) -> {
              notEmpty(name, in[0], a);
              long[] shape = reducedShape(name, in[0], a);
              return new TensorSpec[] {
                new TensorSpec(shape, in[0].dtype()), new TensorSpec(shape, DType.INT64)
              };
            },
            (in, out, a) -> {
              int[] dims = dims(in[0], a);
              ReduceKernels.extremum(in[0], out[0], dims, max);
              ReduceKernels.argExtremum(in[0], out[1], dims, max);
            })
        .gradient(
            Op.Saves.OUTPUTS,
            Grads.unary(
                (ctx, g) -> {
                  int dim = ctx.attrs().intsAt(0)[0];
                  boolean keep = ctx.attrs().boolAt(1) || ctx.inputShape(0).length == 0;
                  Tensor index = ctx.output(1);
                  return Indexing.gatherBackward(
                      keep ? g : Views.unsqueeze(g, dim),
                      keep ? index : Views.unsqueeze(index, dim),
                      ctx.inputShape(0),
                      dim);
                }));
  }

  private static final Op MAX_DIM = extremumWithIndex("max", true);
  private static final Op MIN_DIM = extremumWithIndex("min", false);

  private static Op argExtremum(String name, boolean max) {
    return Op.function(
            name,
            (in, a) -> {
              if (in[0].dtype() == DType.BOOL) {
                throw Check.bad(name, "input is bool; expected numbers");
              }
              notEmpty(name, in[0], a);
              return TensorSpec.one(reducedShape(name, in[0], a), DType.INT64);
            },
            (in, out, a) -> ReduceKernels.argExtremum(in[0], out[0], dims(in[0], a), max))
        .notDifferentiable();
  }

  private static final Op ARGMAX = argExtremum("argmax", true);
  private static final Op ARGMIN = argExtremum("argmin", false);

  private static Op logic(String name, boolean all) {
    return Op.function(
            name,
            (in, a) ->
                // PyTorch keeps uint8, the bool of its early versions.
                TensorSpec.one(
                    reducedShape(name, in[0], a),
                    in[0].dtype() == DType.UINT8 ? DType.UINT8 : DType.BOOL),
            (in, out, a) -> ReduceKernels.logic(in[0], out[0], dims(in[0], a), all))
        .notDifferentiable();
  }

  private static final Op ALL = logic("all", true);
  private static final Op ANY = logic("any", false);

  private static final Op PROD =
      Op.function(
              "prod",
              (in, a) ->
                  TensorSpec.one(
                      reducedShape("prod", in[0], a),
                      in[0].dtype().isFloatingPoint() ? in[0].dtype() : DType.INT64),
              (in, out, a) -> ReduceKernels.prod(in[0], out[0], dims(in[0], a)))
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary(
                  (ctx, g) -> Dispatcher.call(prodBackward(), ctx.attrs(), g, ctx.input(0))));

  private static final Op PROD_BACKWARD =
      Op.function(
              "prod_backward",
              (in, a) -> TensorSpec.one(in[1].shape(), in[1].dtype()),
              (in, out, a) -> ReduceKernels.prodBackward(in[0], in[1], out[0], dims(in[1], a)))
          .notDifferentiable();

  private static Op prodBackward() {
    return PROD_BACKWARD;
  }

  private static Op variance(String name, boolean root) {
    return Op.function(
            name,
            (in, a) -> {
              Check.floating(name, "input", in[0]);
              return TensorSpec.one(reducedShape(name, in[0], a), in[0].dtype());
            },
            (in, out, a) ->
                ReduceKernels.variance(in[0], out[0], dims(in[0], a), a.doubleAt(2), root))
        .gradient(
            Op.Saves.BOTH,
            Grads.unary(
                (ctx, g) -> {
                  Tensor x = ctx.input(0);
                  int[] dims = dims(x, ctx.attrs());
                  boolean keep = ctx.attrs().boolAt(1);
                  double n = Math.max(0, count(x.shape(), dims) - ctx.attrs().doubleAt(2));
                  Tensor scale = Pointwise.mul(g, root ? 1 / n : 2 / n);
                  if (root) {
                    // The slope at a deviation of 0 counts as 0.
                    scale =
                        Compare.maskedFill(
                            Pointwise.div(scale, ctx.output(0)), Compare.eq(ctx.output(0), 0), 0);
                  }
                  Tensor centred = Pointwise.sub(x, mean(x, dims, true));
                  return Pointwise.mul(centred, keep ? scale : restore(scale, x.shape(), dims));
                }));
  }

  private static final Op VAR = variance("var", false);
  private static final Op STD = variance("std", true);

  private static final Op VECTOR_NORM =
      Op.function(
              "vector_norm",
              (in, a) -> {
                Check.floating("vector_norm", "input", in[0]);
                return TensorSpec.one(reducedShape("vector_norm", in[0], a), in[0].dtype());
              },
              (in, out, a) -> ReduceKernels.norm(in[0], out[0], dims(in[0], a), a.doubleAt(2)))
          .gradient(
              Op.Saves.BOTH,
              Grads.unary(
                  (ctx, g) -> {
                    Tensor x = ctx.input(0);
                    int[] dims = dims(x, ctx.attrs());
                    boolean keep = ctx.attrs().boolAt(1);
                    Tensor y = keep ? ctx.output(0) : restore(ctx.output(0), x.shape(), dims);
                    Tensor h = keep ? g : restore(g, x.shape(), dims);
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
      Tensor share = Pointwise.div(g, sum(mask, dims, true));
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

  private static final Op LOG_SUM_EXP =
      Op.function(
              "logsumexp",
              (in, a) ->
                  TensorSpec.one(
                      reducedShape("logsumexp", in[0], a), Promotion.floating(in[0].dtype())),
              (in, out, a) -> ReduceKernels.logSumExp(in[0], out[0], dims(in[0], a)))
          .gradient(
              Op.Saves.BOTH,
              Grads.unary(
                  (ctx, g) -> {
                    Tensor x = ctx.input(0);
                    int[] dims = dims(x, ctx.attrs());
                    boolean keep = ctx.attrs().boolAt(1);
                    Tensor y = keep ? ctx.output(0) : restore(ctx.output(0), x.shape(), dims);
                    Tensor h = keep ? g : restore(g, x.shape(), dims);
                    return Pointwise.mul(h, Unary.exp(Pointwise.sub(x, y)));
                  }));

  private static final Op CUMSUM =
      Op.function(
              "cumsum",
              (in, a) -> {
                int unused = Check.dim("cumsum", a.intAt(0), in[0].ndim());
                return TensorSpec.one(
                    in[0].shape(), in[0].dtype().isFloatingPoint() ? in[0].dtype() : DType.INT64);
              },
              (in, out, a) ->
                  SoftmaxKernels.cumsum(
                      in[0],
                      out[0],
                      Check.dim("cumsum", a.intAt(0), in[0].ndim()),
                      !a.isNull(1) && a.boolAt(1)))
          .gradient(
              Op.Saves.NOTHING,
              Grads.unary(
                  (ctx, g) -> {
                    boolean reverse = !ctx.attrs().isNull(1) && ctx.attrs().boolAt(1);
                    return Dispatcher.call(cumsumOp(), Attrs.of(ctx.attrs().get(0), !reverse), g);
                  }));

  private static Op cumsumOp() {
    return CUMSUM;
  }

  private static Attrs attrs(String op, Tensor x, int @Nullable [] dims, boolean keep) {
    return Attrs.of(Check.dims(op, dims, x.ndim()), keep);
  }

  /** The sum; integers and bool give int64. */
  public static Tensor sum(Tensor x, int[] dims, boolean keepDim) {
    return Dispatcher.call(SUM, attrs("sum", x, dims, keepDim), x);
  }

  /** The sum of all elements, or over the given dimensions. */
  public static Tensor sum(Tensor x, int... dims) {
    return sum(x, dims, false);
  }

  /** The mean; integers are refused. */
  public static Tensor mean(Tensor x, int[] dims, boolean keepDim) {
    return Dispatcher.call(MEAN, attrs("mean", x, dims, keepDim), x);
  }

  /** The mean of all elements, or over the given dimensions. */
  public static Tensor mean(Tensor x, int... dims) {
    return mean(x, dims, false);
  }

  /**
   * Sums over the dimensions that broadcasting {@code shape} to the tensor's shape repeats; the
   * tensor itself where there are none.
   */
  public static Tensor sumToSize(Tensor x, long... shape) {
    if (Arrays.equals(x.shape(), shape)) {
      return x;
    }
    boolean fits = shape.length <= x.ndim();
    for (int i = 0; fits && i < shape.length; i++) {
      long size = x.shape()[i + x.ndim() - shape.length];
      fits = shape[i] == size || shape[i] == 1;
    }
    if (!fits) {
      throw Check.bad(
          "sum_to_size",
          "shape "
              + Arrays.toString(shape)
              + " does not broadcast to "
              + Arrays.toString(x.shape()));
    }
    return Dispatcher.call(SUM_TO_SIZE, Attrs.of(shape), x);
  }

  /** The largest element, NaN where there is one; equal extrema share the gradient. */
  public static Tensor amax(Tensor x, int[] dims, boolean keepDim) {
    return Dispatcher.call(AMAX, attrs("amax", x, dims, keepDim), x);
  }

  /** The smallest element, NaN where there is one; equal extrema share the gradient. */
  public static Tensor amin(Tensor x, int[] dims, boolean keepDim) {
    return Dispatcher.call(AMIN, attrs("amin", x, dims, keepDim), x);
  }

  /** The largest of all elements. */
  public static Tensor max(Tensor x) {
    return amax(x, new int[0], false);
  }

  /** The smallest of all elements. */
  public static Tensor min(Tensor x) {
    return amin(x, new int[0], false);
  }

  /** The largest elements along a dimension and their first positions. */
  public static Tensor[] max(Tensor x, int dim, boolean keepDim) {
    return Dispatcher.callAll(MAX_DIM, attrs("max", x, one("max", x, dim), keepDim), x);
  }

  /** The smallest elements along a dimension and their first positions. */
  public static Tensor[] min(Tensor x, int dim, boolean keepDim) {
    return Dispatcher.callAll(MIN_DIM, attrs("min", x, one("min", x, dim), keepDim), x);
  }

  private static int[] one(String op, Tensor x, int dim) {
    return new int[] {Check.dim(op, dim, x.ndim())};
  }

  /** The position of the first largest element in row-major order. */
  public static Tensor argmax(Tensor x) {
    return Dispatcher.call(ARGMAX, attrs("argmax", x, null, false), x);
  }

  /** The positions of the first largest elements along a dimension. */
  public static Tensor argmax(Tensor x, int dim, boolean keepDim) {
    return Dispatcher.call(ARGMAX, attrs("argmax", x, one("argmax", x, dim), keepDim), x);
  }

  /** The position of the first smallest element in row-major order. */
  public static Tensor argmin(Tensor x) {
    return Dispatcher.call(ARGMIN, attrs("argmin", x, null, false), x);
  }

  /** The positions of the first smallest elements along a dimension. */
  public static Tensor argmin(Tensor x, int dim, boolean keepDim) {
    return Dispatcher.call(ARGMIN, attrs("argmin", x, one("argmin", x, dim), keepDim), x);
  }

  /** Whether all elements are not 0. */
  public static Tensor all(Tensor x, int[] dims, boolean keepDim) {
    return Dispatcher.call(ALL, attrs("all", x, dims, keepDim), x);
  }

  /** Whether some element is not 0. */
  public static Tensor any(Tensor x, int[] dims, boolean keepDim) {
    return Dispatcher.call(ANY, attrs("any", x, dims, keepDim), x);
  }

  /** The product; integers and bool give int64. */
  public static Tensor prod(Tensor x, int[] dims, boolean keepDim) {
    return Dispatcher.call(PROD, attrs("prod", x, dims, keepDim), x);
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

  /** ln of the sum of exponentials, without overflow. */
  public static Tensor logSumExp(Tensor x, int[] dims, boolean keepDim) {
    return Dispatcher.call(LOG_SUM_EXP, attrs("logsumexp", x, dims, keepDim), x);
  }

  /** Running sums along a dimension; integers give int64. */
  public static Tensor cumsum(Tensor x, int dim) {
    return Dispatcher.call(CUMSUM, Attrs.of(Check.dim("cumsum", dim, x.ndim()), false), x);
  }
}
