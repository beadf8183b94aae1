package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.RopeKernels;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** Rotary position embedding and scaled dot-product attention. Any thread. */
public final class Attention {
  private Attention() {}

  private static final Op ROPE =
      Op.function(
              "rope",
              (in, a) -> {
                Check.floating("rope", "input", in[0]);
                long[] s = in[0].shape();
                int dim = a.intAt(0);
                if (s.length < 2 || s[s.length - 1] % 2 != 0 || dim >= s.length - 1) {
                  throw Check.bad(
                      "rope",
                      "input has shape "
                          + Arrays.toString(s)
                          + "; expected an even last dimension behind dimension "
                          + dim);
                }
                long[] table = {s[dim], s[s.length - 1] / 2};
                Check.sameShape("rope", "cos", in[1], table);
                Check.sameShape("rope", "sin", in[2], table);
                return TensorSpec.one(s, in[0].dtype());
              },
              (in, out, a) ->
                  RopeKernels.rotate(in[0], in[1], in[2], out[0], a.intAt(0), a.boolAt(1)))
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary(
                  (ctx, g) ->
                      Dispatcher.call(
                          ropeOp(),
                          Attrs.of(ctx.attrs().get(0), !ctx.attrs().boolAt(1)),
                          g,
                          ctx.input(1),
                          ctx.input(2))));

  private static Op ropeOp() {
    return ROPE;
  }

  /**
   * Rotates neighbouring pairs (2e, 2e+1) of the last dimension by position-dependent angles; Su et
   * al., arXiv:2104.09864. The gradient is the inverse rotation.
   *
   * @param x any shape; positions run along {@code sequenceDim}, which is not the last dimension
   * @param cos cosines [positions, pairs]
   * @param sin sines [positions, pairs]
   */
  public static Tensor rope(Tensor x, Tensor cos, Tensor sin, int sequenceDim) {
    return Dispatcher.call(
        ROPE, Attrs.of(Check.dim("rope", sequenceDim, x.ndim()), false), x, cos, sin);
  }

  /**
   * The cosines and sines of t theta^(-2e/width) for positions t and pairs e, computed in double
   * and rounded once to float32.
   */
  public static StridedTensor[] ropeTables(int positions, int width, double theta) {
    int half = width / 2;
    float[] cos = new float[positions * half];
    float[] sin = new float[positions * half];
    for (int t = 0; t < positions; t++) {
      for (int e = 0; e < half; e++) {
        double angle = t * Math.pow(theta, -2.0 * e / width);
        cos[t * half + e] = (float) Math.cos(angle);
        sin[t * half + e] = (float) Math.sin(angle);
      }
    }
    return new StridedTensor[] {
      (StridedTensor) Tensor.of(cos, positions, half),
      (StridedTensor) Tensor.of(sin, positions, half)
    };
  }

  /** A bool matrix that is true above the diagonal: what causal attention must not see. */
  public static Tensor causalMask(long queries, long keys) {
    return Indexing.triu(Creation.ones(DType.BOOL, queries, keys), 1);
  }

  /**
   * softmax(q k^T / sqrt(width)) v over [..., length, width]; Vaswani et al., arXiv:1706.03762.
   *
   * @param mask true where a key must not be seen, broadcast to [..., queries, keys]; or null
   */
  public static Tensor scaledDotProduct(
      Tensor query, Tensor key, Tensor value, @Nullable Tensor mask) {
    double scale = 1 / Math.sqrt((double) query.size(-1));
    Tensor scores = Pointwise.mul(MatMul.matmul(query, Views.transpose(key, -2, -1)), scale);
    if (mask != null) {
      scores = Compare.maskedFill(scores, mask, Double.NEGATIVE_INFINITY);
    }
    return MatMul.matmul(Softmaxes.softmax(scores, -1), value);
  }
}
