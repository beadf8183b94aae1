package dev.weft.tensor.op;

import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.OptimizerKernels;
import dev.weft.tensor.cuda.CudaUpdates;

/**
 * Fused updates of parameters in place. Besides the first argument they also change the state that
 * they are given. To be called without recording of gradients.
 */
public final class Updates {
  private Updates() {}

  private static TensorSpec[] sameShapes(String op, Tensor[] in) {
    Check.floating(op, "parameter", in[0]);
    String[] names = {"parameter", "gradient", "state", "state"};
    for (int i = 1; i < in.length; i++) {
      Check.sameShape(op, names[i], in[i], in[0].shape());
    }
    return TensorSpec.one(in[0].shape(), in[0].dtype());
  }

  private static OptimizerKernels.AdamStep step(Attrs a) {
    double rate = a.doubleAt(0);
    double beta1 = a.doubleAt(1);
    double beta2 = a.doubleAt(2);
    double k = a.doubleAt(5);
    return new OptimizerKernels.AdamStep(
        1 - rate * a.doubleAt(4),
        beta1,
        beta2,
        rate / (1 - Math.pow(beta1, k)),
        Math.sqrt(1 - Math.pow(beta2, k)),
        a.doubleAt(3));
  }

  private static final Op ADAMW =
      Op.inPlace(
              "adamw_",
              (in, a) -> sameShapes("adamw_", in),
              (in, out, a) -> {
                OptimizerKernels.adamw(in[0], in[1], in[2], in[3], step(a));
                bumpState(in);
              })
          .cuda(
              (in, out, a) -> {
                CudaUpdates.adamw(in, step(a));
                bumpState(in);
              })
          .notDifferentiable();

  private static final Op FOREACH_ADAMW =
      Op.inPlace(
              "foreach_adamw_",
              (in, a) -> {
                if (in.length % 4 != 0) {
                  throw Check.bad(
                      "foreach_adamw_",
                      in.length
                          + " tensors; expected parameter, gradient, mean and mean square of each");
                }
                for (int i = 0; i < in.length; i += 4) {
                  TensorSpec[] unused =
                      sameShapes("foreach_adamw_", java.util.Arrays.copyOfRange(in, i, i + 4));
                }
                return TensorSpec.one(in[0].shape(), in[0].dtype());
              },
              (in, out, a) -> {
                OptimizerKernels.AdamStep step = step(a);
                for (int i = 0; i < in.length; i += 4) {
                  OptimizerKernels.adamw(in[i], in[i + 1], in[i + 2], in[i + 3], step);
                }
                bumpState(in);
              })
          .cuda(
              (in, out, a) -> {
                CudaUpdates.adamw(in, step(a));
                bumpState(in);
              })
          .notDifferentiable();

  /** Counts the change of all but the first tensor, which the dispatcher does. */
  private static void bumpState(StridedTensor[] in) {
    for (int i = 0; i < in.length; i += 4) {
      if (i > 0) {
        in[i].storage().bumpVersion();
      }
      in[i + 2].storage().bumpVersion();
      in[i + 3].storage().bumpVersion();
    }
  }

  /**
   * One AdamW step (Loshchilov and Hutter, arXiv:1711.05101) in this order: parameter *= 1 - rate
   * decay; mean and mean square are updated; parameter -= rate / (1 - beta1^k) mean / (sqrt(square)
   * / sqrt(1 - beta2^k) + eps). Factors are computed in double and rounded where they meet a
   * tensor.
   *
   * @param k the number of this step, from 1
   */
  public static Tensor adamw(
      Tensor parameter,
      Tensor gradient,
      Tensor mean,
      Tensor square,
      double rate,
      double beta1,
      double beta2,
      double eps,
      double decay,
      long k) {
    return Dispatcher.call(
        ADAMW, Attrs.of(rate, beta1, beta2, eps, decay, k), parameter, gradient, mean, square);
  }

  /**
   * {@link #adamw} on many plain parameters of one device, which a GPU does in a launch or two.
   *
   * @param tensors parameter, gradient, mean and mean square of the first parameter, then of the
   *     next; at least one
   */
  public static void adamwAll(
      Tensor[] tensors, double rate, double beta1, double beta2, double eps, double decay, long k) {
    if (tensors.length == 0) {
      throw Check.bad("foreach_adamw_", "there are no tensors; expected at least one parameter");
    }
    Tensor unused =
        Dispatcher.call(FOREACH_ADAMW, Attrs.of(rate, beta1, beta2, eps, decay, k), tensors);
  }
}
