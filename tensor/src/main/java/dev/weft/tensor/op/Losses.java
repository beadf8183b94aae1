package dev.weft.tensor.op;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.LossKernels;
import dev.weft.tensor.cuda.CudaLosses;
import java.util.Arrays;

/**
 * Losses. A reduction is {@code mean}, {@code sum} or {@code none} and attribute 0 of the
 * operators; those over class indices have the ignored index as attribute 1. Any thread.
 */
public final class Losses {
  private Losses() {}

  /** The index that does not count unless another is given. */
  public static final long IGNORE_INDEX = -100;

  private static LossKernels.Options options(String op, Attrs a) {
    return new LossKernels.Options(
        op, a.get(0, String.class), a.longAt(1), a.isNull(2) ? 0 : a.doubleAt(2));
  }

  private static void checkReduction(String op, Attrs a) {
    String r = a.get(0, String.class);
    if (!r.equals("mean") && !r.equals("sum") && !r.equals("none")) {
      throw Check.bad(op, "reduction '" + r + "'; expected mean, sum or none");
    }
  }

  private static TensorSpec[] lossSpec(String op, Tensor input, Tensor target, Attrs a) {
    checkReduction(op, a);
    Check.floating(op, "input", input);
    Check.integral(op, "target", target);
    long[] s = input.shape();
    if (s.length == 0) {
      throw Check.bad(op, "input has no dimensions; expected [N, C, ...] or [C]");
    }
    long[] expected;
    if (s.length == 1) {
      expected = new long[0];
    } else {
      expected = new long[s.length - 1];
      expected[0] = s[0];
      System.arraycopy(s, 2, expected, 1, s.length - 2);
    }
    if (!Arrays.equals(expected, target.shape())) {
      throw Check.bad(
          op,
          "target has shape "
              + Arrays.toString(target.shape())
              + "; expected "
              + Arrays.toString(expected)
              + " for input "
              + Arrays.toString(s));
    }
    boolean none = a.get(0, String.class).equals("none");
    return TensorSpec.one(none ? expected : new long[0], input.dtype());
  }

  private static final Op CROSS_ENTROPY_BACKWARD =
      Op.function(
              "cross_entropy_backward",
              (in, a) -> TensorSpec.one(in[1].shape(), in[1].dtype()),
              (in, out, a) ->
                  LossKernels.crossEntropyBackward(
                      in[0], in[1], in[2], out[0], options("cross_entropy", a)))
          .cuda(
              (in, out, a) ->
                  CudaLosses.crossEntropyBackward(
                      in[0], in[1], in[2], out[0], options("cross_entropy", a)))
          .notDifferentiable();

  private static final Op CROSS_ENTROPY =
      Op.function(
              "cross_entropy",
              (in, a) -> {
                double smoothing = a.isNull(2) ? 0 : a.doubleAt(2);
                if (!(smoothing >= 0 && smoothing <= 1)) {
                  throw Check.bad(
                      "cross_entropy", "label_smoothing " + smoothing + "; expected 0 to 1");
                }
                return lossSpec("cross_entropy", in[0], in[1], a);
              },
              (in, out, a) ->
                  LossKernels.crossEntropy(in[0], in[1], out[0], options("cross_entropy", a)))
          .cuda(
              (in, out, a) ->
                  CudaLosses.crossEntropy(in[0], in[1], out[0], options("cross_entropy", a)))
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary(
                  (ctx, g) ->
                      Dispatcher.call(
                          CROSS_ENTROPY_BACKWARD, ctx.attrs(), g, ctx.input(0), ctx.input(1))));

  private static final Op NLL_LOSS_BACKWARD =
      Op.function(
              "nll_loss_backward",
              (in, a) -> TensorSpec.one(in[1].shape(), in[1].dtype()),
              (in, out, a) ->
                  LossKernels.nllBackward(in[0], in[1], in[2], out[0], options("nll_loss", a)))
          .cuda(
              (in, out, a) ->
                  CudaLosses.nllBackward(in[0], in[1], in[2], out[0], options("nll_loss", a)))
          .notDifferentiable();

  private static final Op NLL_LOSS =
      Op.function(
              "nll_loss",
              (in, a) -> lossSpec("nll_loss", in[0], in[1], a),
              (in, out, a) -> LossKernels.nll(in[0], in[1], out[0], options("nll_loss", a)))
          .cuda((in, out, a) -> CudaLosses.nll(in[0], in[1], out[0], options("nll_loss", a)))
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary(
                  (ctx, g) ->
                      Dispatcher.call(
                          NLL_LOSS_BACKWARD, ctx.attrs(), g, ctx.input(0), ctx.input(1))));

  /** The mean over all positions of -ln softmax(logits)[target]; see the full form. */
  public static Tensor crossEntropy(Tensor logits, Tensor target) {
    return crossEntropy(logits, target, "mean", IGNORE_INDEX, 0);
  }

  /**
   * -ln softmax(logits)[target] for logits [N, C, ...] or [C] and class indices [N, ...] or [].
   *
   * @param reduction {@code mean} (over targets that count), {@code sum} or {@code none}
   * @param ignoreIndex the target that does not count
   * @param labelSmoothing the weight of the uniform distribution in the target, 0 to 1
   * @throws IndexOutOfBoundsException if a target is no class
   */
  public static Tensor crossEntropy(
      Tensor logits, Tensor target, String reduction, long ignoreIndex, double labelSmoothing) {
    return Dispatcher.call(
        CROSS_ENTROPY, Attrs.of(reduction, ignoreIndex, labelSmoothing), logits, target);
  }

  /** -logProbabilities[target], in the shapes of {@link #crossEntropy}. */
  public static Tensor nllLoss(
      Tensor logProbabilities, Tensor target, String reduction, long ignoreIndex) {
    return Dispatcher.call(NLL_LOSS, Attrs.of(reduction, ignoreIndex), logProbabilities, target);
  }

  /** The squared difference of two tensors that broadcast. */
  public static Tensor mseLoss(Tensor input, Tensor target, String reduction) {
    checkReduction("mse_loss", Attrs.of(reduction));
    Tensor squares = Unary.square(Pointwise.sub(input, target));
    return switch (reduction) {
      // A sum of parts is right however the parts are sized; a mean of parts' means is not.
      case "mean" -> Pointwise.div(Reductions.sum(squares), (Number) squares.numel());
      case "sum" -> Reductions.sum(squares);
      default -> squares;
    };
  }
}
