package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.ReduceKernels;
import dev.weft.tensor.cpu.SoftmaxKernels;
import dev.weft.tensor.cuda.CudaReduce;
import dev.weft.tensor.cuda.CudaScans;
import java.util.Arrays;

/**
 * Sums, means and norms over dimensions. No dimensions means all; attribute 0 of the operators is
 * the array of dimensions, attribute 1 says whether they stay with size 1. Any thread.
 */
public final class Reductions {
  private Reductions() {}

  private static final Op SUM =
      Op.function(
              "sum",
              (in, a) ->
                  TensorSpec.one(
                      Reduced.reducedShape("sum", in[0], a),
                      in[0].dtype().isFloatingPoint() ? in[0].dtype() : DType.INT64),
              (in, out, a) -> ReduceKernels.sum(in[0], out[0], Reduced.dims(in[0], a), 1))
          .cuda((in, out, a) -> CudaReduce.SUM.run(in[0], out[0], Reduced.dims(in[0], a), 1))
          .gradient(
              Op.Saves.NOTHING,
              Grads.unary(
                  (ctx, g) -> {
                    long[] shape = ctx.inputShape(0);
                    int[] dims = Check.dims("sum", ctx.attrs().intsAt(0), shape.length);
                    return Reduced.spread(g, shape, dims, ctx.attrs().boolAt(1));
                  }));

  private static final Op MEAN =
      Op.function(
              "mean",
              (in, a) -> {
                Check.floating("mean", "input", in[0]);
                return TensorSpec.one(Reduced.reducedShape("mean", in[0], a), in[0].dtype());
              },
              (in, out, a) -> {
                int[] dims = Reduced.dims(in[0], a);
                ReduceKernels.sum(in[0], out[0], dims, (double) Reduced.count(in[0].shape(), dims));
              })
          .cuda(
              (in, out, a) -> {
                int[] dims = Reduced.dims(in[0], a);
                CudaReduce.MEAN.run(
                    in[0], out[0], dims, (double) Reduced.count(in[0].shape(), dims));
              })
          .gradient(
              Op.Saves.NOTHING,
              Grads.unary(
                  (ctx, g) -> {
                    long[] shape = ctx.inputShape(0);
                    int[] dims = Check.dims("mean", ctx.attrs().intsAt(0), shape.length);
                    Tensor scaled = Pointwise.div(g, Reduced.count(shape, dims));
                    return Reduced.spread(scaled, shape, dims, ctx.attrs().boolAt(1));
                  }));

  private static final Op SUM_TO_SIZE =
      Op.function(
              "sum_to_size",
              (in, a) -> TensorSpec.one(a.longsAt(0), in[0].dtype()),
              (in, out, a) ->
                  ReduceKernels.sum(in[0], out[0], broadcastDims(in[0].shape(), a.longsAt(0)), 1))
          .cuda(
              (in, out, a) ->
                  CudaReduce.SUM.run(in[0], out[0], broadcastDims(in[0].shape(), a.longsAt(0)), 1))
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

  private static Op logic(String name, boolean all) {
    return Op.function(
            name,
            (in, a) ->
                // PyTorch keeps uint8, the bool of its early versions.
                TensorSpec.one(
                    Reduced.reducedShape(name, in[0], a),
                    in[0].dtype() == DType.UINT8 ? DType.UINT8 : DType.BOOL),
            (in, out, a) -> ReduceKernels.logic(in[0], out[0], Reduced.dims(in[0], a), all))
        .cuda(
            (in, out, a) ->
                (all ? CudaReduce.ALL : CudaReduce.ANY)
                    .run(in[0], out[0], Reduced.dims(in[0], a), 0))
        .notDifferentiable();
  }

  private static final Op ALL = logic("all", true);
  private static final Op ANY = logic("any", false);

  private static final Op PROD =
      Op.function(
              "prod",
              (in, a) ->
                  TensorSpec.one(
                      Reduced.reducedShape("prod", in[0], a),
                      in[0].dtype().isFloatingPoint() ? in[0].dtype() : DType.INT64),
              (in, out, a) -> ReduceKernels.prod(in[0], out[0], Reduced.dims(in[0], a)))
          .cuda((in, out, a) -> CudaReduce.PROD.run(in[0], out[0], Reduced.dims(in[0], a), 0))
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary(
                  (ctx, g) -> Dispatcher.call(prodBackward(), ctx.attrs(), g, ctx.input(0))));

  private static final Op PROD_BACKWARD =
      Op.function(
              "prod_backward",
              (in, a) -> TensorSpec.one(in[1].shape(), in[1].dtype()),
              (in, out, a) ->
                  ReduceKernels.prodBackward(in[0], in[1], out[0], Reduced.dims(in[1], a)))
          .cuda(
              (in, out, a) -> CudaScans.prodBackward(in[0], in[1], out[0], Reduced.dims(in[1], a)))
          .notDifferentiable();

  private static Op prodBackward() {
    return PROD_BACKWARD;
  }

  private static final Op LOG_SUM_EXP =
      Op.function(
              "logsumexp",
              (in, a) ->
                  TensorSpec.one(
                      Reduced.reducedShape("logsumexp", in[0], a),
                      Promotion.floating(in[0].dtype())),
              (in, out, a) -> ReduceKernels.logSumExp(in[0], out[0], Reduced.dims(in[0], a)))
          .cuda(
              (in, out, a) -> CudaReduce.LOG_SUM_EXP.run(in[0], out[0], Reduced.dims(in[0], a), 0))
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
          .cuda(
              (in, out, a) ->
                  CudaScans.cumsum(
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

  /** The sum; integers and bool give int64. */
  public static Tensor sum(Tensor x, int[] dims, boolean keepDim) {
    return Dispatcher.call(SUM, Reduced.attrs("sum", x, dims, keepDim), x);
  }

  /** The sum of all elements, or over the given dimensions. */
  public static Tensor sum(Tensor x, int... dims) {
    return sum(x, dims, false);
  }

  /** The mean; integers are refused. */
  public static Tensor mean(Tensor x, int[] dims, boolean keepDim) {
    return Dispatcher.call(MEAN, Reduced.attrs("mean", x, dims, keepDim), x);
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

  /** Whether all elements are not 0. */
  public static Tensor all(Tensor x, int[] dims, boolean keepDim) {
    return Dispatcher.call(ALL, Reduced.attrs("all", x, dims, keepDim), x);
  }

  /** Whether some element is not 0. */
  public static Tensor any(Tensor x, int[] dims, boolean keepDim) {
    return Dispatcher.call(ANY, Reduced.attrs("any", x, dims, keepDim), x);
  }

  /** The product; integers and bool give int64. */
  public static Tensor prod(Tensor x, int[] dims, boolean keepDim) {
    return Dispatcher.call(PROD, Reduced.attrs("prod", x, dims, keepDim), x);
  }

  /** ln of the sum of exponentials, without overflow. */
  public static Tensor logSumExp(Tensor x, int[] dims, boolean keepDim) {
    return Dispatcher.call(LOG_SUM_EXP, Reduced.attrs("logsumexp", x, dims, keepDim), x);
  }

  /** Running sums along a dimension; integers give int64. */
  public static Tensor cumsum(Tensor x, int dim) {
    return Dispatcher.call(CUMSUM, Attrs.of(Check.dim("cumsum", dim, x.ndim()), false), x);
  }
}
