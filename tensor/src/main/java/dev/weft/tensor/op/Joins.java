package dev.weft.tensor.op;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.JoinKernels;
import dev.weft.tensor.cuda.CudaMoves;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Tensors joined along a dimension (attribute 0). Any thread. */
public final class Joins {
  private Joins() {}

  private static final Op CAT =
      Op.function(
              "cat",
              (in, a) -> TensorSpec.one(catShape(in, a.intAt(0)), Promotion.of(in)),
              (in, out, a) -> JoinKernels.cat(in, out[0], a.intAt(0)))
          .cuda((in, out, a) -> CudaMoves.cat(in, out[0], a.intAt(0)))
          .gradient(
              Op.Saves.NOTHING,
              Grads.of(
                  (ctx, g) -> {
                    int dim = ctx.attrs().intAt(0);
                    @Nullable Tensor[] result = new @Nullable Tensor[ctx.inputCount()];
                    long at = 0;
                    for (int i = 0; i < result.length; i++) {
                      long[] shape = ctx.inputShape(i);
                      boolean skipped = isSkipped(shape) && g.ndim() > 1;
                      long size = skipped ? 0 : shape[dim];
                      if (ctx.needs(i)) {
                        Tensor part = Views.narrow(g, dim, at, size);
                        result[i] = skipped ? Views.reshape(part, 0) : part;
                      }
                      at += size;
                    }
                    return result;
                  }));

  /** Empty vectors join with anything, as in PyTorch. */
  private static boolean isSkipped(long[] shape) {
    return shape.length == 1 && shape[0] == 0;
  }

  private static long[] catShape(Tensor[] in, int dim) {
    long @Nullable [] out = null;
    for (Tensor t : in) {
      long[] s = t.shape();
      if (isSkipped(s)) {
        continue;
      }
      if (out == null) {
        if (dim >= s.length) {
          throw Check.bad("cat", "dim " + dim + " is out of range for " + Arrays.toString(s));
        }
        out = s.clone();
        continue;
      }
      boolean same = s.length == out.length;
      for (int d = 0; same && d < s.length; d++) {
        same = d == dim || s[d] == out[d];
      }
      if (!same) {
        throw Check.bad(
            "cat",
            "a tensor has shape "
                + Arrays.toString(s)
                + "; expected the sizes of "
                + Arrays.toString(out)
                + " but along dim "
                + dim);
      }
      out[dim] += s[dim];
    }
    return out == null ? new long[] {0} : out;
  }

  private static final Op STACK =
      Op.function(
              "stack",
              (in, a) -> {
                int dim = a.intAt(0);
                long[] s = in[0].shape();
                for (Tensor t : in) {
                  Check.sameShape("stack", "a tensor", t, s);
                }
                long[] shape = new long[s.length + 1];
                System.arraycopy(s, 0, shape, 0, dim);
                shape[dim] = in.length;
                System.arraycopy(s, dim, shape, dim + 1, s.length - dim);
                return TensorSpec.one(shape, Promotion.of(in));
              },
              (in, out, a) -> JoinKernels.stack(in, out[0], a.intAt(0)))
          .cuda((in, out, a) -> CudaMoves.stack(in, out[0], a.intAt(0)))
          .gradient(
              Op.Saves.NOTHING,
              Grads.of(
                  (ctx, g) -> {
                    @Nullable Tensor[] result = new @Nullable Tensor[ctx.inputCount()];
                    for (int i = 0; i < result.length; i++) {
                      result[i] = ctx.needs(i) ? Views.select(g, ctx.attrs().intAt(0), i) : null;
                    }
                    return result;
                  }));

  /** One after the other along a dimension; the other sizes must be equal. */
  public static Tensor cat(List<? extends Tensor> tensors, int dim) {
    if (tensors.isEmpty()) {
      throw Check.bad("cat", "tensors is empty; expected at least one");
    }
    int ndim = 0;
    for (Tensor t : tensors) {
      if (t.ndim() == 0) {
        throw Check.bad("cat", "a tensor has no dimensions; use stack");
      }
      ndim = Math.max(ndim, isSkipped(t.shape()) ? 1 : t.ndim());
    }
    return Dispatcher.call(
        CAT, Attrs.of(Check.dim("cat", dim, ndim)), tensors.toArray(new Tensor[0]));
  }

  /** One after the other along a new dimension; all shapes must be equal. */
  public static Tensor stack(List<? extends Tensor> tensors, int dim) {
    if (tensors.isEmpty()) {
      throw Check.bad("stack", "tensors is empty; expected at least one");
    }
    int ndim = tensors.get(0).ndim() + 1;
    return Dispatcher.call(
        STACK, Attrs.of(Check.dim("stack", dim, ndim)), tensors.toArray(new Tensor[0]));
  }
}
