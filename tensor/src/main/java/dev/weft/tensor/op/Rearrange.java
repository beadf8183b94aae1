package dev.weft.tensor.op;

import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.RearrangeKernels;
import dev.weft.tensor.cuda.CudaMoves;
import java.util.Arrays;

/** Copies with elements in other places. Any thread. */
public final class Rearrange {
  private Rearrange() {}

  private static final Op FLIP =
      Op.function(
              "flip",
              (in, a) -> TensorSpec.one(in[0].shape(), in[0].dtype()),
              (in, out, a) -> RearrangeKernels.flip(in[0], out[0], a.intsAt(0), 0))
          .cuda((in, out, a) -> CudaMoves.flip(in[0], out[0], a.intsAt(0)))
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> flip(g, ctx.attrs().intsAt(0))));

  private static final Op ROLL =
      Op.function(
              "roll",
              (in, a) -> TensorSpec.one(in[0].shape(), in[0].dtype()),
              (in, out, a) -> RearrangeKernels.roll(in[0], out[0], a.longsAt(1), a.intsAt(0), 0))
          .cuda((in, out, a) -> CudaMoves.roll(in[0], out[0], a.longsAt(1), a.intsAt(0)))
          .gradient(
              Op.Saves.NOTHING,
              Grads.unary(
                  (ctx, g) ->
                      roll(
                          g,
                          Arrays.stream(ctx.attrs().longsAt(1)).map(s -> -s).toArray(),
                          ctx.attrs().intsAt(0))));

  private static final Op REPEAT =
      Op.function(
              "repeat",
              (in, a) -> TensorSpec.one(repeatedShape(in[0].shape(), a.longsAt(0)), in[0].dtype()),
              (in, out, a) -> RearrangeKernels.repeat(leading(in[0], out[0].ndim()), out[0], 0))
          .cuda((in, out, a) -> CudaMoves.repeat(leading(in[0], out[0].ndim()), out[0]))
          .gradient(
              Op.Saves.NOTHING,
              Grads.unary(
                  (ctx, g) -> repeatGradient(g, ctx.inputShape(0), ctx.attrs().longsAt(0))));

  private static long[] repeatedShape(long[] shape, long[] repeats) {
    int lead = repeats.length - shape.length;
    long[] out = repeats.clone();
    for (int d = 0; d < shape.length; d++) {
      out[lead + d] *= shape[d];
    }
    return out;
  }

  private static StridedTensor leading(StridedTensor x, int ndim) {
    long[] shape = new long[ndim];
    long[] strides = new long[ndim];
    Arrays.fill(shape, 1);
    int lead = ndim - x.ndim();
    System.arraycopy(x.shape(), 0, shape, lead, x.ndim());
    System.arraycopy(x.strides(), 0, strides, lead, x.ndim());
    return x.withLayout(shape, strides, x.offset());
  }

  /** Sums over the copies: each dimension as (copies, size), then the copies go. */
  private static Tensor repeatGradient(Tensor g, long[] shape, long[] repeats) {
    int lead = repeats.length - shape.length;
    Tensor sum = g;
    for (int d = repeats.length - 1; d >= 0; d--) {
      if (d < lead) {
        sum = Reductions.sum(sum, d);
      } else if (repeats[d] != 1) {
        sum = Reductions.sum(Views.unflatten(sum, d, repeats[d], shape[d - lead]), d);
      }
    }
    return sum;
  }

  /** The order of positions reversed along dimensions; none given means no change. */
  public static Tensor flip(Tensor x, int... dims) {
    int[] at = dims.length == 0 ? dims : Check.dims("flip", dims, x.ndim());
    return Dispatcher.call(FLIP, Attrs.of(at), x);
  }

  /**
   * Positions moved towards the end by shifts; what leaves comes in at the start.
   *
   * @param dims one for each shift, or none to roll the flattened tensor by one shift
   */
  public static Tensor roll(Tensor x, long[] shifts, int... dims) {
    if (dims.length == 0 && shifts.length == 1) {
      return Views.reshape(roll(Views.reshape(x, -1), shifts, 0), x.shape());
    }
    if (shifts.length != dims.length) {
      throw Check.bad(
          "roll",
          "shifts "
              + Arrays.toString(shifts)
              + " and dims "
              + Arrays.toString(dims)
              + " differ in number");
    }
    return Dispatcher.call(ROLL, Attrs.of(Check.dims("roll", dims, x.ndim()), shifts), x);
  }

  /** Copies side by side; repeats beyond the tensor's dimensions count for new ones in front. */
  public static Tensor repeat(Tensor x, long... repeats) {
    boolean fits = repeats.length >= x.ndim();
    for (long r : repeats) {
      fits &= r >= 0;
    }
    if (!fits) {
      throw Check.bad(
          "repeat",
          "repeats "
              + Arrays.toString(repeats)
              + "; expected at least "
              + x.ndim()
              + " numbers, none negative");
    }
    return Dispatcher.call(REPEAT, Attrs.of(repeats), x);
  }
}
