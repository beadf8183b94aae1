package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.ReduceKernels;
import dev.weft.tensor.cuda.CudaReduce;
import java.util.Arrays;

/**
 * Largest and smallest elements and where they are; NaN counts as both. An empty extent is refused.
 * Attributes are as in {@link Reductions}. Any thread.
 */
public final class Extrema {
  private Extrema() {}

  private static Op extremum(String name, boolean max) {
    return Op.function(
            name,
            (in, a) -> {
              notEmpty(name, in[0], a);
              return TensorSpec.one(Reduced.reducedShape(name, in[0], a), in[0].dtype());
            },
            (in, out, a) -> ReduceKernels.extremum(in[0], out[0], Reduced.dims(in[0], a), max))
        .cuda((in, out, a) -> value(max).run(in[0], out[0], Reduced.dims(in[0], a), 0))
        .gradient(
            Op.Saves.BOTH,
            Grads.unary(
                (ctx, g) -> {
                  // The gradient is shared evenly among equal extrema.
                  Tensor x = ctx.input(0);
                  int[] dims = Reduced.dims(x, ctx.attrs());
                  boolean keep = ctx.attrs().boolAt(1);
                  Tensor best =
                      keep ? ctx.output(0) : Reduced.restore(ctx.output(0), x.shape(), dims);
                  Tensor mask = Casts.to(Compare.eq(x, best), g.dtype());
                  Tensor share = keep ? g : Reduced.restore(g, x.shape(), dims);
                  share = Pointwise.div(share, Reductions.sum(mask, dims, true));
                  return Pointwise.mul(mask, share);
                }));
  }

  private static CudaReduce value(boolean max) {
    return max ? CudaReduce.AMAX : CudaReduce.AMIN;
  }

  private static CudaReduce place(boolean max) {
    return max ? CudaReduce.ARGMAX : CudaReduce.ARGMIN;
  }

  private static void notEmpty(String op, Tensor x, Attrs a) {
    int[] dims = Check.dims(op, a.intsAt(0), x.ndim());
    if (Reduced.count(x.shape(), dims) == 0) {
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
              long[] shape = Reduced.reducedShape(name, in[0], a);
              return new TensorSpec[] {
                new TensorSpec(shape, in[0].dtype()), new TensorSpec(shape, DType.INT64)
              };
            },
            (in, out, a) -> {
              int[] dims = Reduced.dims(in[0], a);
              ReduceKernels.extremum(in[0], out[0], dims, max);
              ReduceKernels.argExtremum(in[0], out[1], dims, max);
            })
        .cuda(
            (in, out, a) -> {
              int[] dims = Reduced.dims(in[0], a);
              value(max).run(in[0], out[0], dims, 0);
              place(max).run(in[0], out[1], dims, 0);
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
              return TensorSpec.one(Reduced.reducedShape(name, in[0], a), DType.INT64);
            },
            (in, out, a) -> ReduceKernels.argExtremum(in[0], out[0], Reduced.dims(in[0], a), max))
        .cuda((in, out, a) -> place(max).run(in[0], out[0], Reduced.dims(in[0], a), 0))
        .notDifferentiable();
  }

  private static final Op ARGMAX = argExtremum("argmax", true);
  private static final Op ARGMIN = argExtremum("argmin", false);

  /** The largest element, NaN where there is one; equal extrema share the gradient. */
  public static Tensor amax(Tensor x, int[] dims, boolean keepDim) {
    return Dispatcher.call(AMAX, Reduced.attrs("amax", x, dims, keepDim), x);
  }

  /** The smallest element, NaN where there is one; equal extrema share the gradient. */
  public static Tensor amin(Tensor x, int[] dims, boolean keepDim) {
    return Dispatcher.call(AMIN, Reduced.attrs("amin", x, dims, keepDim), x);
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
    return Dispatcher.callAll(MAX_DIM, Reduced.attrs("max", x, one("max", x, dim), keepDim), x);
  }

  /** The smallest elements along a dimension and their first positions. */
  public static Tensor[] min(Tensor x, int dim, boolean keepDim) {
    return Dispatcher.callAll(MIN_DIM, Reduced.attrs("min", x, one("min", x, dim), keepDim), x);
  }

  private static int[] one(String op, Tensor x, int dim) {
    return new int[] {Check.dim(op, dim, x.ndim())};
  }

  /** The position of the first largest element in row-major order. */
  public static Tensor argmax(Tensor x) {
    return Dispatcher.call(ARGMAX, Reduced.attrs("argmax", x, null, false), x);
  }

  /** The positions of the first largest elements along a dimension. */
  public static Tensor argmax(Tensor x, int dim, boolean keepDim) {
    return Dispatcher.call(ARGMAX, Reduced.attrs("argmax", x, one("argmax", x, dim), keepDim), x);
  }

  /** The position of the first smallest element in row-major order. */
  public static Tensor argmin(Tensor x) {
    return Dispatcher.call(ARGMIN, Reduced.attrs("argmin", x, null, false), x);
  }

  /** The positions of the first smallest elements along a dimension. */
  public static Tensor argmin(Tensor x, int dim, boolean keepDim) {
    return Dispatcher.call(ARGMIN, Reduced.attrs("argmin", x, one("argmin", x, dim), keepDim), x);
  }
}
