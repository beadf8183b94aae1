package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.FillKernels;
import dev.weft.tensor.cpu.SortKernels;
import java.util.Arrays;

/** Sorting along a dimension, and comparison of whole tensors. Any thread. */
public final class Sorting {
  private Sorting() {}

  /** Attributes: dimension, length of the result along it, descending. */
  private static Op sorting(String name) {
    return Op.function(
            name,
            (in, a) -> {
              long[] shape = in[0].shape().clone();
              if (shape.length > 0) {
                shape[a.intAt(0)] = a.longAt(1);
              }
              return new TensorSpec[] {
                new TensorSpec(shape, in[0].dtype()), new TensorSpec(shape, DType.INT64)
              };
            },
            (in, out, a) -> SortKernels.sort(in[0], out[0], out[1], a.intAt(0), a.boolAt(2)))
        .gradient(
            Op.Saves.OUTPUTS,
            Grads.unary(
                (ctx, g) ->
                    Indexing.gatherBackward(
                        g, ctx.output(1), ctx.inputShape(0), ctx.attrs().intAt(0))));
  }

  private static final Op SORT = sorting("sort");
  private static final Op TOPK = sorting("topk");

  private static final Op EQUAL =
      Op.function(
              "equal",
              (in, a) -> {
                Check.sameShape("equal", "other", in[1], in[0].shape());
                return TensorSpec.one(new long[0], DType.BOOL);
              },
              (in, out, a) -> {
                boolean same =
                    Promotion.of(in).isFloatingPoint()
                        ? equal(in[0].toDoubleArray(), in[1].toDoubleArray())
                        : Arrays.equals(in[0].toLongArray(), in[1].toLongArray());
                FillKernels.fill(out[0], same ? 1 : 0);
              })
          .notDifferentiable();

  private static final Op ALL_CLOSE =
      Op.function(
              "allclose",
              (in, a) -> {
                long[] unused = Check.broadcast("allclose", in);
                return TensorSpec.one(new long[0], DType.BOOL);
              },
              (in, out, a) -> {
                long[] shape = Check.broadcast("allclose", in[0], in[1]);
                double[] x = Views.expand(in[0], shape).toDoubleArray();
                double[] y = Views.expand(in[1], shape).toDoubleArray();
                boolean close = true;
                for (int i = 0; close && i < x.length; i++) {
                  close =
                      x[i] == y[i]
                          || (Double.isNaN(x[i]) && Double.isNaN(y[i]) && a.boolAt(2))
                          || (Math.abs(x[i] - y[i])
                                  <= a.doubleAt(1) + a.doubleAt(0) * Math.abs(y[i])
                              && !Double.isInfinite(y[i]));
                }
                FillKernels.fill(out[0], close ? 1 : 0);
              })
          .notDifferentiable();

  private static boolean equal(double[] x, double[] y) {
    for (int i = 0; i < x.length; i++) {
      if (x[i] != y[i]) {
        return false;
      }
    }
    return true;
  }

  /** The elements in order along a dimension and their positions; equal ones keep their order. */
  public static Tensor[] sort(Tensor x, int dim, boolean descending) {
    int d = Check.dim("sort", dim, x.ndim());
    return Dispatcher.callAll(SORT, Attrs.of(d, x.ndim() == 0 ? 1L : x.shape()[d], descending), x);
  }

  /**
   * The {@code k} largest (or smallest) elements along a dimension in order, and their positions.
   */
  public static Tensor[] topk(Tensor x, long k, int dim, boolean largest) {
    int d = Check.dim("topk", dim, x.ndim());
    long size = x.ndim() == 0 ? 1 : x.shape()[d];
    if (k < 0 || k > size) {
      throw Check.bad("topk", "k " + k + "; expected 0 to " + size);
    }
    return Dispatcher.callAll(TOPK, Attrs.of(d, k, largest), x);
  }

  /** Whether two tensors have the same shape and equal elements (NaN equals nothing). */
  public static boolean equal(Tensor a, Tensor b) {
    return Arrays.equals(a.shape(), b.shape())
        && Dispatcher.call(EQUAL, Attrs.NONE, a, b).item() != 0;
  }

  /** Whether |a - b| &lt;= atol + rtol |b| everywhere; the tensors broadcast. */
  public static boolean allClose(Tensor a, Tensor b, double rtol, double atol, boolean equalNan) {
    return Dispatcher.call(ALL_CLOSE, Attrs.of(rtol, atol, equalNan), a, b).item() != 0;
  }
}
