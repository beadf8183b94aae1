package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.AttentionKernels;
import dev.weft.tensor.cpu.RopeKernels;
import dev.weft.tensor.cuda.CudaAttention;
import dev.weft.tensor.cuda.CudaRope;
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
          .cuda(
              (in, out, a) -> CudaRope.rotate(in[0], in[1], in[2], out[0], a.intAt(0), a.boolAt(1)))
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

  // ---- fused attention; attributes are scale, causal and the dimension of positions ----

  private static void checkAttention(String op, Attrs a, Tensor q, Tensor k, Tensor v) {
    Check.floating(op, "query", q);
    Check.sameDType(op, q, k, v);
    Check.ndim(op, "query", q, 4);
    long[] s = q.shape();
    int positions = a.intAt(2);
    if (positions != 1 && positions != 2) {
      throw Check.bad(op, "positions run along dimension " + positions + "; expected 1 or 2");
    }
    long[] expected = s.clone();
    expected[positions] = k.ndim() == 4 ? k.shape()[positions] : -1;
    Check.sameShape(op, "key", k, expected);
    Check.sameShape(op, "value", v, expected);
    if (s[3] == 0) {
      throw Check.bad(op, "query has shape " + Arrays.toString(s) + "; expected a width above 0");
    }
    if (!(a.doubleAt(0) > 0)) {
      throw Check.bad(op, "scale " + a.doubleAt(0) + "; expected more than 0");
    }
  }

  private static DType wide(Tensor t) {
    return t.dtype() == DType.FLOAT64 ? DType.FLOAT64 : DType.FLOAT32;
  }

  private static final Op SDPA_BACKWARD =
      Op.function(
              "scaled_dot_product_attention_backward",
              (in, a) ->
                  new TensorSpec[] {
                    new TensorSpec(in[1].shape(), in[1].dtype()),
                    new TensorSpec(in[2].shape(), in[2].dtype()),
                    new TensorSpec(in[3].shape(), in[3].dtype())
                  },
              (in, out, a) ->
                  AttentionKernels.backward(in, out, a.doubleAt(0), a.boolAt(1), a.intAt(2)))
          .cuda(
              (in, out, a) ->
                  CudaAttention.backward(
                      in[0],
                      in[1],
                      in[2],
                      in[3],
                      in[4],
                      in[5],
                      out,
                      a.doubleAt(0),
                      a.boolAt(1),
                      a.intAt(2)))
          .notDifferentiable();

  private static final Op SDPA =
      Op.function(
              "scaled_dot_product_attention",
              (in, a) -> {
                checkAttention("scaled_dot_product_attention", a, in[0], in[1], in[2]);
                long[] s = in[0].shape();
                int positions = a.intAt(2);
                return new TensorSpec[] {
                  new TensorSpec(s, in[0].dtype()),
                  new TensorSpec(new long[] {s[0], s[3 - positions], s[positions]}, wide(in[0]))
                };
              },
              (in, out, a) ->
                  AttentionKernels.forward(in, out, a.doubleAt(0), a.boolAt(1), a.intAt(2)))
          .cuda(
              (in, out, a) ->
                  CudaAttention.forward(
                      in[0], in[1], in[2], out[0], out[1], a.doubleAt(0), a.boolAt(1), a.intAt(2)))
          .gradient(
              Op.Saves.BOTH,
              (ctx, g) -> {
                @Nullable Tensor[] result = new @Nullable Tensor[3];
                Tensor gradient = g[0];
                if (gradient != null) {
                  Tensor[] all =
                      Dispatcher.callAll(
                          SDPA_BACKWARD,
                          ctx.attrs(),
                          gradient,
                          ctx.input(0),
                          ctx.input(1),
                          ctx.input(2),
                          ctx.output(0),
                          ctx.output(1));
                  for (int i = 0; i < 3; i++) {
                    result[i] = ctx.needs(i) ? all[i] : null;
                  }
                }
                return result;
              });

  /**
   * softmax(q k^T / sqrt(width)) v in one operator that keeps no matrix of scores where the device
   * can do without (a GPU, float16 and bfloat16, widths up to 128); Dao et al., arXiv:2205.14135.
   *
   * @param query [batch, heads, queries, width], or [batch, queries, heads, width] where {@code
   *     sequenceDim} is 1: the layout that linear layers give, for which nothing needs to be copied
   * @param key of the same layout, with as many heads
   * @param value of the key's shape
   * @param causal whether query i sees only the keys 0 to i
   * @param sequenceDim where positions run: 1 or 2
   */
  public static Tensor scaledDotProduct(
      Tensor query, Tensor key, Tensor value, boolean causal, int sequenceDim) {
    double scale = 1 / Math.sqrt((double) Math.max(1, query.size(-1)));
    return Dispatcher.callAll(
        SDPA,
        Attrs.of(scale, causal, Check.dim("scaled_dot_product_attention", sequenceDim, 4)),
        query,
        key,
        value)[0];
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
