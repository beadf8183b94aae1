package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.SortKernels;
import dev.weft.tensor.cuda.CudaSort;

/** Elements in another order. Any thread. */
public final class Ordering {
  private Ordering() {}

  /** Attributes: dim, descending. */
  private static final Op SORT =
      Op.function(
              "sort",
              (in, a) ->
                  new TensorSpec[] {
                    new TensorSpec(in[0].shape(), in[0].dtype()),
                    new TensorSpec(in[0].shape(), DType.INT64)
                  },
              (in, out, a) -> SortKernels.sort(in[0], out[0], out[1], a.intAt(0), a.boolAt(1)))
          .cuda((in, out, a) -> CudaSort.sort(in[0], out[0], out[1], a.intAt(0), a.boolAt(1)))
          .gradient(
              Op.Saves.OUTPUTS,
              Grads.unary(
                  (ctx, g) ->
                      Indexing.gatherBackward(
                          g, ctx.output(1), ctx.inputShape(0), ctx.attrs().intAt(0))));

  /** Attributes: dim, k, largest. */
  private static final Op TOPK =
      Op.function(
              "topk",
              (in, a) -> {
                long[] shape = in[0].shape().clone();
                long k = a.longAt(1);
                long size = shape.length == 0 ? 1 : shape[a.intAt(0)];
                if (k < 0 || k > size) {
                  throw Check.bad("topk", "k " + k + "; expected 0 to " + size);
                }
                if (shape.length > 0) {
                  shape[a.intAt(0)] = k;
                }
                return new TensorSpec[] {
                  new TensorSpec(shape, in[0].dtype()), new TensorSpec(shape, DType.INT64)
                };
              },
              (in, out, a) -> SortKernels.sort(in[0], out[0], out[1], a.intAt(0), a.boolAt(2)))
          .cuda((in, out, a) -> CudaSort.sort(in[0], out[0], out[1], a.intAt(0), a.boolAt(2)))
          .gradient(
              Op.Saves.OUTPUTS,
              Grads.unary(
                  (ctx, g) ->
                      Indexing.gatherBackward(
                          g, ctx.output(1), ctx.inputShape(0), ctx.attrs().intAt(0))));

  /**
   * The elements of each slice in order, and their positions. Equal elements keep their order; NaN
   * counts as largest.
   */
  public static Tensor[] sort(Tensor x, int dim, boolean descending) {
    return Dispatcher.callAll(SORT, Attrs.of(Check.dim("sort", dim, x.ndim()), descending), x);
  }

  /** The k largest (or smallest) elements of each slice in order, and their positions. */
  public static Tensor[] topk(Tensor x, long k, int dim, boolean largest) {
    return Dispatcher.callAll(TOPK, Attrs.of(Check.dim("topk", dim, x.ndim()), k, largest), x);
  }
}
