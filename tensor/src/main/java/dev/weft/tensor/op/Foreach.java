package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.ForeachKernels;
import dev.weft.tensor.cuda.CudaForeach;
import java.util.List;

/**
 * Operators over many plain tensors of one device at once: a GPU does each in a few launches. Not
 * for distributed tensors, whose local ones may be given. Any thread.
 */
public final class Foreach {
  private Foreach() {}

  private static void check(String op, Tensor[] in, int count) {
    for (int i = 0; i < count; i++) {
      Check.floating(op, "tensor " + i, in[i]);
    }
  }

  private static final Op SQUARES =
      Op.function(
              "foreach_squares",
              (in, a) -> {
                check("foreach_squares", in, in.length);
                return TensorSpec.one(new long[0], DType.FLOAT64);
              },
              (in, out, a) -> ForeachKernels.squares(in, out[0]))
          .cuda((in, out, a) -> CudaForeach.squares(in, out[0]))
          .notDifferentiable();

  private static final Op CLIP =
      Op.inPlace(
              "foreach_clip_",
              (in, a) -> {
                int n = in.length - 1;
                check("foreach_clip_", in, n);
                Check.sameShape("foreach_clip_", "square", in[n], new long[0]);
                if (in[n].dtype() != DType.FLOAT64) {
                  throw Check.bad(
                      "foreach_clip_", "square has dtype " + in[n].dtype() + "; expected float64");
                }
                return TensorSpec.one(in[0].shape(), in[0].dtype());
              },
              (in, out, a) -> {
                ForeachKernels.clip(in, a.doubleAt(0));
                bumpRest(in);
              })
          .cuda(
              (in, out, a) -> {
                CudaForeach.clip(in, a.doubleAt(0));
                bumpRest(in);
              })
          .notDifferentiable();

  /** The dispatcher counts the change of the first tensor. */
  private static void bumpRest(dev.weft.tensor.StridedTensor[] in) {
    for (int i = 1; i < in.length - 1; i++) {
      in[i].storage().bumpVersion();
    }
  }

  private static void atLeastOne(String op, List<? extends Tensor> tensors) {
    if (tensors.isEmpty()) {
      throw Check.bad(op, "there are no tensors; expected at least one");
    }
  }

  /** The sum of the squares of all elements, as float64 without dimensions, on their device. */
  public static Tensor squares(List<? extends Tensor> tensors) {
    atLeastOne("foreach_squares", tensors);
    return Dispatcher.call(SQUARES, Attrs.NONE, tensors.toArray(Tensor[]::new));
  }

  /**
   * Multiplies all tensors by min(1, maxNorm / (norm + 1e-6)) without waiting for a device.
   *
   * @param square the norm's square, as {@link #squares} gives it
   */
  public static void clip(List<? extends Tensor> tensors, Tensor square, double maxNorm) {
    atLeastOne("foreach_clip_", tensors);
    Tensor[] in = tensors.toArray(new Tensor[tensors.size() + 1]);
    in[tensors.size()] = square;
    Tensor unused = Dispatcher.call(CLIP, Attrs.of(maxNorm), in);
  }
}
