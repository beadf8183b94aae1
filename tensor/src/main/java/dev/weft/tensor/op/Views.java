package dev.weft.tensor.op;

import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.cpu.JoinKernels;
import dev.weft.tensor.cuda.CudaMoves;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Other shapes of the same data. Views share their input's storage; only {@link #reshape} copies
 * where no view exists. Any thread.
 */
public final class Views {
  private Views() {}

  private static final Op VIEW =
      Op.view("view", (x, a) -> view(x, Shapes.reshape(x.shape(), a.longsAt(0))))
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> reshapeBack(g, ctx.inputShape(0))));

  private static final Op RESHAPE =
      Op.view(
              "reshape",
              (x, a) -> {
                long[] shape = Shapes.reshape(x.shape(), a.longsAt(0));
                long @Nullable [] strides = ViewLayouts.viewStrides(x.shape(), x.strides(), shape);
                if (strides != null) {
                  return x.withLayout(shape, strides, x.offset());
                }
                StridedTensor copy = (StridedTensor) Autograd.noGrad(() -> Casts.copy(x));
                return copy.withLayout(shape, Shapes.contiguousStrides(shape), 0);
              })
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> reshapeBack(g, ctx.inputShape(0))));

  private static final Op PERMUTE =
      Op.view(
              "permute",
              (x, a) -> {
                int[] dims = a.intsAt(0);
                long[] shape = new long[dims.length];
                long[] strides = new long[dims.length];
                for (int i = 0; i < dims.length; i++) {
                  shape[i] = x.shape()[dims[i]];
                  strides[i] = x.strides()[dims[i]];
                }
                return x.withLayout(shape, strides, x.offset());
              })
          .gradient(
              Op.Saves.NOTHING,
              Grads.unary(
                  (ctx, g) -> {
                    int[] dims = ctx.attrs().intsAt(0);
                    int[] inverse = new int[dims.length];
                    for (int i = 0; i < dims.length; i++) {
                      inverse[dims[i]] = i;
                    }
                    return permute(g, inverse);
                  }));

  private static final Op TRANSPOSE =
      Op.view(
              "transpose",
              (x, a) -> {
                long[] shape = x.shape().clone();
                long[] strides = x.strides().clone();
                if (shape.length > 0) {
                  int i = a.intAt(0);
                  int j = a.intAt(1);
                  shape[i] = x.shape()[j];
                  shape[j] = x.shape()[i];
                  strides[i] = x.strides()[j];
                  strides[j] = x.strides()[i];
                }
                return x.withLayout(shape, strides, x.offset());
              })
          .gradient(
              Op.Saves.NOTHING,
              Grads.unary((ctx, g) -> Dispatcher.call(transposeOp(), ctx.attrs(), g)));

  private static Op transposeOp() {
    return TRANSPOSE;
  }

  private static final Op SLICE =
      Op.view(
              "slice",
              (x, a) -> {
                int dim = a.intAt(0);
                long start = a.longAt(1);
                long step = a.longAt(3);
                long size = sliceSize(start, a.longAt(2), step);
                long[] shape = x.shape().clone();
                long[] strides = x.strides().clone();
                shape[dim] = size;
                long offset = x.offset() + (size == 0 ? 0 : start * strides[dim]);
                strides[dim] *= step;
                return x.withLayout(shape, strides, offset);
              })
          .gradient(
              Op.Saves.NOTHING,
              Grads.unary(
                  (ctx, g) ->
                      Dispatcher.call(
                          sliceBackwardOp(),
                          Attrs.of(
                              ctx.inputShape(0),
                              ctx.attrs().get(0),
                              ctx.attrs().get(1),
                              ctx.attrs().get(2),
                              ctx.attrs().get(3)),
                          g)));

  private static final Op SLICE_BACKWARD =
      Op.function(
              "slice_backward",
              (in, a) -> TensorSpec.one(a.longsAt(0), in[0].dtype()),
              (in, out, a) ->
                  JoinKernels.sliceBackward(in[0], out[0], a.intAt(1), a.longAt(2), a.longAt(4)))
          .cuda(
              (in, out, a) ->
                  CudaMoves.sliceBackward(in[0], out[0], a.intAt(1), a.longAt(2), a.longAt(4)))
          .notDifferentiable();

  private static Op sliceBackwardOp() {
    return SLICE_BACKWARD;
  }

  private static final Op SELECT =
      Op.view(
              "select",
              (x, a) -> {
                int dim = a.intAt(0);
                long index = a.longAt(1);
                return x.withLayout(
                    ViewLayouts.without(x.shape(), dim),
                    ViewLayouts.without(x.strides(), dim),
                    x.offset() + index * x.strides()[dim]);
              })
          .gradient(
              Op.Saves.NOTHING,
              Grads.unary(
                  (ctx, g) -> {
                    int dim = ctx.attrs().intAt(0);
                    long index = ctx.attrs().longAt(1);
                    return Dispatcher.call(
                        SLICE_BACKWARD,
                        Attrs.of(ctx.inputShape(0), dim, index, index + 1, 1L),
                        unsqueeze(g, dim));
                  }));

  private static final Op SQUEEZE =
      Op.view(
              "squeeze",
              (x, a) -> {
                boolean[] drop = new boolean[x.ndim()];
                for (int d : a.intsAt(0)) {
                  drop[d] = x.shape()[d] == 1;
                }
                long[] shape = new long[x.ndim()];
                long[] strides = new long[x.ndim()];
                int n = 0;
                for (int i = 0; i < drop.length; i++) {
                  if (!drop[i]) {
                    shape[n] = x.shape()[i];
                    strides[n++] = x.strides()[i];
                  }
                }
                return x.withLayout(Arrays.copyOf(shape, n), Arrays.copyOf(strides, n), x.offset());
              })
          .gradient(
              Op.Saves.NOTHING,
              Grads.unary(
                  (ctx, g) -> {
                    Tensor result = g;
                    int[] dims = ctx.attrs().intsAt(0).clone();
                    Arrays.sort(dims);
                    for (int d : dims) {
                      if (ctx.inputShape(0)[d] == 1) {
                        result = unsqueeze(result, d);
                      }
                    }
                    return result;
                  }));

  private static final Op UNSQUEEZE =
      Op.view(
              "unsqueeze",
              (x, a) -> {
                int dim = a.intAt(0);
                long step = dim < x.ndim() ? x.shape()[dim] * x.strides()[dim] : 1;
                return x.withLayout(
                    ViewLayouts.with(x.shape(), dim, 1),
                    ViewLayouts.with(x.strides(), dim, step),
                    x.offset());
              })
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> squeeze(g, ctx.attrs().intAt(0))));

  private static final Op EXPAND =
      Op.view(
              "expand",
              (x, a) -> {
                long[] shape = a.longsAt(0);
                int lead = shape.length - x.ndim();
                long[] strides = new long[shape.length];
                for (int i = lead; i < shape.length; i++) {
                  long size = x.shape()[i - lead];
                  strides[i] = size == 1 && shape[i] != 1 ? 0 : x.strides()[i - lead];
                }
                return x.withLayout(shape, strides, x.offset());
              })
          .gradient(
              Op.Saves.NOTHING,
              Grads.unary((ctx, g) -> Reductions.sumToSize(g, ctx.inputShape(0))));

  private static StridedTensor view(StridedTensor x, long[] shape) {
    long @Nullable [] strides = ViewLayouts.viewStrides(x.shape(), x.strides(), shape);
    if (strides == null) {
      throw Check.bad(
          "view",
          "shape "
              + Arrays.toString(shape)
              + " is no view of shape "
              + Arrays.toString(x.shape())
              + " with strides "
              + Arrays.toString(x.strides())
              + "; use reshape");
    }
    return x.withLayout(shape, strides, x.offset());
  }

  private static long sliceSize(long start, long end, long step) {
    return end <= start ? 0 : (end - start + step - 1) / step;
  }

  private static long[] resolve(String op, Tensor x, long... shape) {
    try {
      return Shapes.reshape(x.shape(), shape);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(op + ": " + e.getMessage(), e);
    }
  }

  /** The gradient of a reshape: it may be gathered where its layout has no place in the shape. */
  private static Tensor reshapeBack(Tensor g, long[] shape) {
    return g.kind() == null
        ? reshape(g, shape)
        : Dispatcher.call(RESHAPE, Attrs.of(shape, true), g);
  }

  /** The same elements in row-major order in another shape; one size may be -1. */
  public static Tensor reshape(Tensor x, long... shape) {
    return Dispatcher.call(RESHAPE, Attrs.of(resolve("reshape", x, shape)), x);
  }

  /** The same, refused where the strides allow no view. */
  public static Tensor view(Tensor x, long... shape) {
    return Dispatcher.call(VIEW, Attrs.of(resolve("view", x, shape)), x);
  }

  /** The dimensions in another order. */
  public static Tensor permute(Tensor x, int... dims) {
    int[] order = dims.length == 0 && x.ndim() == 0 ? dims : Check.dims("permute", dims, x.ndim());
    if (dims.length != x.ndim()) {
      throw Check.bad(
          "permute",
          "dims " + Arrays.toString(dims) + " does not name all " + x.ndim() + " dimensions");
    }
    return Dispatcher.call(PERMUTE, Attrs.of(order), x);
  }

  /** Two dimensions exchanged. */
  public static Tensor transpose(Tensor x, int dim0, int dim1) {
    int i = Check.dim("transpose", dim0, x.ndim());
    int j = Check.dim("transpose", dim1, x.ndim());
    return Dispatcher.call(TRANSPOSE, Attrs.of(i, j), x);
  }

  /** The transpose of a matrix; vectors stay. */
  public static Tensor t(Tensor x) {
    if (x.ndim() > 2) {
      throw Check.bad(
          "t", "input has " + x.ndim() + " dimensions; expected at most 2, use transpose");
    }
    return x.ndim() < 2 ? x : transpose(x, 0, 1);
  }

  /** One dimension moved to another place. */
  public static Tensor movedim(Tensor x, int source, int destination) {
    int from = Check.dim("movedim", source, x.ndim());
    int to = Check.dim("movedim", destination, x.ndim());
    List<Integer> order = new ArrayList<>();
    for (int i = 0; i < x.ndim(); i++) {
      if (i != from) {
        order.add(i);
      }
    }
    order.add(to, from);
    return permute(x, order.stream().mapToInt(Integer::intValue).toArray());
  }

  /**
   * Positions start, start + step, ... before end of a dimension. Negative positions count from the
   * end; positions outside are cut, as in Python.
   */
  public static Tensor slice(Tensor x, int dim, long start, long end, long step) {
    if (x.ndim() == 0) {
      throw Check.bad("slice", "input has no dimensions");
    }
    if (step < 1) {
      throw Check.bad("slice", "step " + step + "; expected at least 1");
    }
    int d = Check.dim("slice", dim, x.ndim());
    long size = x.shape()[d];
    long from = Math.min(Math.max(start < 0 ? start + size : start, 0), size);
    long to = Math.min(Math.max(end < 0 ? end + size : end, from), size);
    return Dispatcher.call(SLICE, Attrs.of(d, from, to, step), x);
  }

  /** A range of a dimension. */
  public static Tensor narrow(Tensor x, int dim, long start, long length) {
    int d = Check.dim("narrow", dim, x.ndim());
    if (x.ndim() == 0) {
      throw Check.bad("narrow", "input has no dimensions");
    }
    long size = x.shape()[d];
    long from = start < 0 ? start + size : start;
    if (from < 0 || length < 0 || from + length > size) {
      throw new IndexOutOfBoundsException(
          "narrow: start "
              + start
              + " with length "
              + length
              + " is out of range for dimension "
              + d
              + " of size "
              + size);
    }
    return Dispatcher.call(SLICE, Attrs.of(d, from, from + length, 1L), x);
  }

  /** One position of a dimension, which goes. */
  public static Tensor select(Tensor x, int dim, long index) {
    if (x.ndim() == 0) {
      throw Check.bad("select", "input has no dimensions");
    }
    int d = Check.dim("select", dim, x.ndim());
    long size = x.shape()[d];
    if (index < -size || index >= size) {
      throw new IndexOutOfBoundsException(
          "select: index " + index + " is out of range for dimension " + d + " of size " + size);
    }
    return Dispatcher.call(SELECT, Attrs.of(d, index < 0 ? index + size : index), x);
  }

  /** Without the dimensions of size 1, or those of size 1 among the given. */
  public static Tensor squeeze(Tensor x, int... dims) {
    return Dispatcher.call(SQUEEZE, Attrs.of(Check.dims("squeeze", dims, x.ndim())), x);
  }

  /** With a new dimension of size 1. */
  public static Tensor unsqueeze(Tensor x, int dim) {
    return Dispatcher.call(UNSQUEEZE, Attrs.of(Check.dim("unsqueeze", dim, x.ndim() + 1)), x);
  }

  /** Dimensions of size 1 repeated, new ones in front; -1 keeps a size. No copy is made. */
  public static Tensor expand(Tensor x, long... shape) {
    int lead = shape.length - x.ndim();
    long[] to = shape.clone();
    boolean fits = lead >= 0;
    for (int i = 0; fits && i < shape.length; i++) {
      long size = i < lead ? 1 : x.shape()[i - lead];
      if (shape[i] == -1 && i >= lead) {
        to[i] = size;
      }
      fits = to[i] >= 0 && (size == 1 || size == to[i]);
    }
    if (!fits) {
      throw Check.bad(
          "expand",
          "shape "
              + Arrays.toString(shape)
              + " does not fit a tensor of shape "
              + Arrays.toString(x.shape()));
    }
    return Arrays.equals(to, x.shape()) ? x : Dispatcher.call(EXPAND, Attrs.of(to), x);
  }

  /** Several neighbouring dimensions as one. */
  public static Tensor flatten(Tensor x, int startDim, int endDim) {
    int from = Check.dim("flatten", startDim, x.ndim());
    int to = Check.dim("flatten", endDim, x.ndim());
    if (x.ndim() == 0) {
      return reshape(x, 1);
    }
    if (from > to) {
      throw Check.bad("flatten", "startDim " + startDim + " lies behind endDim " + endDim);
    }
    long[] shape = new long[x.ndim() - (to - from)];
    long size = 1;
    for (int i = 0, n = 0; i < x.ndim(); i++) {
      if (i < from || i > to) {
        shape[n++] = x.shape()[i];
      } else {
        size *= x.shape()[i];
        if (i == to) {
          shape[n++] = size;
        }
      }
    }
    return reshape(x, shape);
  }

  /** One dimension as several; one size may be -1. */
  public static Tensor unflatten(Tensor x, int dim, long... sizes) {
    int d = Check.dim("unflatten", dim, x.ndim());
    long[] parts;
    try {
      parts = Shapes.reshape(new long[] {x.shape()[d]}, sizes);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException("unflatten: " + e.getMessage(), e);
    }
    long[] shape = new long[x.ndim() - 1 + parts.length];
    System.arraycopy(x.shape(), 0, shape, 0, d);
    System.arraycopy(parts, 0, shape, d, parts.length);
    System.arraycopy(x.shape(), d + 1, shape, d + parts.length, x.ndim() - d - 1);
    return reshape(x, shape);
  }
}
