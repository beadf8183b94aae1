package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.SortKernels;
import java.util.List;

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
          .gradient(
              Op.Saves.OUTPUTS,
              Grads.unary(
                  (ctx, g) ->
                      Indexing.gatherBackward(
                          g, ctx.output(1), ctx.inputShape(0), ctx.attrs().intAt(0))));

  /** Attributes: k, dim, largest. */
  private static final Op TOPK =
      Op.function(
              "topk",
              (in, a) -> {
                long[] shape = in[0].shape().clone();
                long k = a.longAt(0);
                long size = shape.length == 0 ? 1 : shape[a.intAt(1)];
                if (k < 0 || k > size) {
                  throw Check.bad("topk", "k " + k + "; expected 0 to " + size);
                }
                if (shape.length > 0) {
                  shape[a.intAt(1)] = k;
                }
                return new TensorSpec[] {
                  new TensorSpec(shape, in[0].dtype()), new TensorSpec(shape, DType.INT64)
                };
              },
              (in, out, a) -> SortKernels.sort(in[0], out[0], out[1], a.intAt(1), a.boolAt(2)))
          .gradient(
              Op.Saves.OUTPUTS,
              Grads.unary(
                  (ctx, g) ->
                      Indexing.gatherBackward(
                          g, ctx.output(1), ctx.inputShape(0), ctx.attrs().intAt(1))));

  private static final Op FLIP =
      Op.function(
              "flip",
              (in, a) -> TensorSpec.one(in[0].shape(), in[0].dtype()),
              (in, out, a) -> SortKernels.flip(in[0], out[0], a.intsAt(0)))
          .gradient(
              Op.Saves.NOTHING, Grads.unary((ctx, g) -> Dispatcher.call(flipOp(), ctx.attrs(), g)));

  private static Op flipOp() {
    return FLIP;
  }

  /**
   * The elements of each slice in order, and their positions. Equal elements keep their order; NaN
   * counts as largest.
   */
  public static Tensor[] sort(Tensor x, int dim, boolean descending) {
    return Dispatcher.callAll(SORT, Attrs.of(Check.dim("sort", dim, x.ndim()), descending), x);
  }

  /** The k largest (or smallest) elements of each slice in order, and their positions. */
  public static Tensor[] topk(Tensor x, long k, int dim, boolean largest) {
    return Dispatcher.callAll(TOPK, Attrs.of(k, Check.dim("topk", dim, x.ndim()), largest), x);
  }

  /** The elements in reverse order along some dimensions. */
  public static Tensor flip(Tensor x, int... dims) {
    int[] d = dims.length == 0 ? dims : Check.dims("flip", dims, x.ndim());
    return Dispatcher.call(FLIP, Attrs.of(d), x);
  }

  /** The elements moved along a dimension; what leaves at the end comes in at the start. */
  public static Tensor roll(Tensor x, long shift, int dim) {
    int d = Check.dim("roll", dim, x.ndim());
    long n = x.size(d);
    long s = n == 0 ? 0 : Math.floorMod(shift, n);
    return s == 0
        ? Casts.copy(x)
        : Joins.cat(List.of(Views.narrow(x, d, n - s, s), Views.narrow(x, d, 0, n - s)), d);
  }

  /** Copies beside each other: {@code repeats} for each dimension, new ones in front. */
  public static Tensor repeat(Tensor x, long... repeats) {
    int lead = repeats.length - x.ndim();
    if (lead < 0) {
      throw Check.bad(
          "repeat", "repeats has " + repeats.length + " entries; expected at least " + x.ndim());
    }
    long[] split = new long[2 * repeats.length];
    long[] wide = new long[2 * repeats.length];
    long[] joined = new long[repeats.length];
    for (int i = 0; i < repeats.length; i++) {
      long size = i < lead ? 1 : x.shape()[i - lead];
      if (repeats[i] < 0) {
        throw Check.bad("repeat", "repeats has a negative entry " + repeats[i]);
      }
      split[2 * i] = 1;
      split[2 * i + 1] = size;
      wide[2 * i] = repeats[i];
      wide[2 * i + 1] = size;
      joined[i] = repeats[i] * size;
    }
    return Views.reshape(Views.expand(Views.reshape(x, split), wide), joined);
  }
}
