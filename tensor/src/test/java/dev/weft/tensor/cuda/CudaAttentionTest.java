package dev.weft.tensor.cuda;

import static dev.weft.tensor.cuda.Samples.normal;
import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Catalogue;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Views;
import org.junit.jupiter.api.Test;

/**
 * Attention on the GPU, the tiled kernels and the general way, against the CPU's in float64 on the
 * same (rounded) inputs.
 */
@CudaTest
class CudaAttentionTest {
  private static double tolerance(DType t) {
    // Probabilities and their gradients are rounded to the dtype before they are multiplied.
    return t == DType.FLOAT32 ? 2e-5 : 2 * Samples.tolerance(t);
  }

  private static Tensor[] call(String op, Attrs a, Tensor... in) {
    return Dispatcher.callAll(Catalogue.get(op), a, in);
  }

  private static void compare(
      DType t,
      int heads,
      int queries,
      int keys,
      int width,
      boolean causal,
      int dim,
      boolean turned) {
    long[] qs =
        dim == 2 ? new long[] {2, heads, queries, width} : new long[] {2, queries, heads, width};
    long[] ks = dim == 2 ? new long[] {2, heads, keys, width} : new long[] {2, keys, heads, width};
    Tensor[] cpu = {normal(4, t, qs), normal(1, t, qs), normal(2, t, ks), normal(3, t, ks)};
    Tensor[] gpu = new Tensor[4];
    Tensor[] exact = new Tensor[4];
    for (int i = 0; i < 4; i++) {
      exact[i] = Casts.to(cpu[i], DType.FLOAT64);
      gpu[i] =
          turned
              ? Views.transpose(Views.transpose(cpu[i], 1, 2).contiguous().to(AgainstCpu.GPU), 1, 2)
              : cpu[i].to(AgainstCpu.GPU);
    }
    Attrs a = Attrs.of(1 / Math.sqrt(width), causal, dim);
    String what =
        t
            + " "
            + heads
            + " heads, "
            + queries
            + " x "
            + keys
            + ", width "
            + width
            + (causal ? ", causal" : "")
            + ", along "
            + dim
            + (turned ? ", turned" : "");
    Tensor[] expected = call("scaled_dot_product_attention", a, exact[1], exact[2], exact[3]);
    Tensor[] got = call("scaled_dot_product_attention", a, gpu[1], gpu[2], gpu[3]);
    AgainstCpu.close(what + ": result", Casts.to(expected[0], t), got[0], tolerance(t));
    AgainstCpu.close(
        what + ": lse",
        Casts.to(expected[1], got[1].dtype()),
        got[1],
        t == DType.FLOAT64 ? 1e-12 : 1e-4);
    Tensor[] gradients =
        call(
            "scaled_dot_product_attention_backward",
            a,
            exact[0],
            exact[1],
            exact[2],
            exact[3],
            expected[0],
            expected[1]);
    Tensor[] mine =
        call(
            "scaled_dot_product_attention_backward",
            a,
            gpu[0],
            gpu[1],
            gpu[2],
            gpu[3],
            got[0],
            got[1]);
    for (int i = 0; i < 3; i++) {
      AgainstCpu.close(
          what + ": gradient " + i, Casts.to(gradients[i], t), mine[i], 2 * tolerance(t));
    }
  }

  @Test
  void allWidthsAndLengths() {
    for (DType t : Samples.FLOATS) {
      for (int width : new int[] {32, 64, 128}) {
        for (int length : new int[] {1, 16, 63, 64, 65, 200}) {
          compare(t, 3, length, length, width, true, 2, false);
          compare(t, 3, length, length, width, false, 1, false);
        }
      }
    }
  }

  @Test
  void widthsBetweenAndBeyondTheTiledOnes() {
    for (DType t : Samples.FLOATS) {
      for (int width : new int[] {1, 7, 16, 40, 80, 96, 130}) {
        compare(t, 2, 70, 70, width, true, 2, false);
      }
    }
  }

  @Test
  void moreKeysThanQueriesAndFewer() {
    for (DType t : Samples.FLOATS) {
      for (boolean causal : new boolean[] {false, true}) {
        compare(t, 2, 50, 150, 64, causal, 2, false);
        compare(t, 2, 150, 50, 64, causal, 1, false);
        compare(t, 2, 1, 300, 128, causal, 2, false);
        compare(t, 2, 300, 1, 32, causal, 2, false);
      }
    }
  }

  @Test
  void viewsAreReadInPlace() {
    for (DType t : Samples.FLOATS) {
      compare(t, 3, 100, 100, 64, true, 2, true);
      compare(t, 3, 100, 100, 64, true, 1, true);
    }
  }

  @Test
  void nothingToAttendTo() {
    for (DType t : Samples.FLOATS) {
      compare(t, 2, 0, 5, 64, false, 2, false);
      compare(t, 0, 5, 5, 64, false, 2, false);
    }
  }

  @Test
  void gradientsAreTheSameBitsEveryTime() {
    Tensor[] x = new Tensor[4];
    for (int i = 0; i < 4; i++) {
      x[i] = normal(i, DType.BFLOAT16, 2, 4, 512, 64).to(AgainstCpu.GPU);
    }
    Attrs a = Attrs.of(0.125, true, 2);
    Tensor[] out = call("scaled_dot_product_attention", a, x[0], x[1], x[2]);
    float[][] first = null;
    for (int i = 0; i < 4; i++) {
      Tensor[] g =
          call("scaled_dot_product_attention_backward", a, x[3], x[0], x[1], x[2], out[0], out[1]);
      float[][] now = {g[0].toFloatArray(), g[1].toFloatArray(), g[2].toFloatArray()};
      if (first == null) {
        first = now;
      }
      assertThat(now).isDeepEqualTo(first);
    }
  }

  @Test
  void largeScoresDoNotOverflow() {
    for (DType t : new DType[] {DType.BFLOAT16, DType.FLOAT16, DType.FLOAT32}) {
      Tensor q = Casts.to(normal(1, DType.FLOAT32, 1, 1, 70, 64).mul(30), t);
      Tensor v = normal(2, t, 1, 1, 70, 64);
      Attrs a = Attrs.of(1.0, true, 2);
      Tensor[] expected =
          call(
              "scaled_dot_product_attention",
              a,
              Casts.to(q, DType.FLOAT64),
              Casts.to(q, DType.FLOAT64),
              Casts.to(v, DType.FLOAT64));
      Tensor x = q.to(AgainstCpu.GPU);
      Tensor[] got = call("scaled_dot_product_attention", a, x, x, v.to(AgainstCpu.GPU));
      // Scores of tens of thousands, in float32: what is next to the largest may differ.
      AgainstCpu.close("large scores in " + t, Casts.to(expected[0], t), got[0], 5e-2);
    }
  }
}
