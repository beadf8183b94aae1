package dev.weft.tensor.cuda;

import static dev.weft.tensor.cuda.Samples.normal;
import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Catalogue;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Views;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Attention on the GPU, the tiled kernels and the general way, against the CPU's in float64 on the
 * same (rounded) inputs.
 */
@CudaTest
class CudaAttentionTest {
  // Rounded factors: 2^-11 of each, on sums of about as many as give the largest error.
  private static final double TF32_TOLERANCE = 3e-3;

  private static double tolerance(DType t) {
    // Probabilities and their gradients are rounded to the dtype before they are multiplied.
    return t == DType.FLOAT32 ? 1e-5 : 2 * Samples.tolerance(t);
  }

  @AfterEach
  void tf32Off() {
    CudaMath.allowTf32(false);
  }

  private static Tensor[] call(String op, Attrs a, Tensor... in) {
    return Dispatcher.callAll(Catalogue.get(op), a, in);
  }

  /** float32 in both its ways. */
  private static void compare(
      DType t,
      int heads,
      int queries,
      int keys,
      int width,
      boolean causal,
      int dim,
      boolean turned) {
    compare(t, heads, queries, keys, width, causal, dim, turned, false);
    if (t == DType.FLOAT32) {
      compare(t, heads, queries, keys, width, causal, dim, turned, true);
    }
  }

  private static void compare(
      DType t,
      int heads,
      int queries,
      int keys,
      int width,
      boolean causal,
      int dim,
      boolean turned,
      boolean tf32) {
    CudaMath.allowTf32(tf32);
    double tolerance = tf32 ? TF32_TOLERANCE : tolerance(t);
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
            + (tf32 ? " by TF32, " : ", ")
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
    AgainstCpu.close(what + ": result", Casts.to(expected[0], t), got[0], tolerance);
    AgainstCpu.close(
        what + ": lse",
        Casts.to(expected[1], got[1].dtype()),
        got[1],
        tf32 ? TF32_TOLERANCE : t == DType.FLOAT64 ? 1e-12 : 1e-4);
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
      AgainstCpu.close(what + ": gradient " + i, Casts.to(gradients[i], t), mine[i], 2 * tolerance);
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
  void viewsWhoseRowsLieAtOddPlaces() {
    for (DType t : Samples.FLOATS) {
      Attrs a = Attrs.of(0.125, true, 2);
      Tensor[] cpu = new Tensor[4];
      Tensor[] gpu = new Tensor[4];
      for (int i = 0; i < 4; i++) {
        Tensor wide = normal(i, t, 2, 3, 70, 67);
        cpu[i] = Casts.to(Views.narrow(wide, 3, 1, 64), DType.FLOAT64);
        gpu[i] = Views.narrow(wide.to(AgainstCpu.GPU), 3, 1, 64);
      }
      Tensor[] expected = call("scaled_dot_product_attention", a, cpu[1], cpu[2], cpu[3]);
      Tensor[] got = call("scaled_dot_product_attention", a, gpu[1], gpu[2], gpu[3]);
      AgainstCpu.close(t + ": result", Casts.to(expected[0], t), got[0], tolerance(t));
      String backward = "scaled_dot_product_attention_backward";
      Tensor[] gradients =
          call(backward, a, cpu[0], cpu[1], cpu[2], cpu[3], expected[0], expected[1]);
      Tensor[] mine = call(backward, a, gpu[0], gpu[1], gpu[2], gpu[3], got[0], got[1]);
      for (int i = 0; i < 3; i++) {
        AgainstCpu.close(
            t + ": gradient " + i, Casts.to(gradients[i], t), mine[i], 2 * tolerance(t));
      }
    }
  }

  @Test
  void tf32IsUsedOnlyWhenAllowed() {
    Tensor[] x = new Tensor[3];
    Tensor[] exact = new Tensor[3];
    for (int i = 0; i < 3; i++) {
      Tensor cpu = normal(i, DType.FLOAT32, 1, 2, 100, 64);
      exact[i] = Casts.to(cpu, DType.FLOAT64);
      x[i] = cpu.to(AgainstCpu.GPU);
    }
    Attrs a = Attrs.of(0.125, true, 2);
    String op = "scaled_dot_product_attention";
    double[] expected = call(op, a, exact)[0].toDoubleArray();
    double off = worst(expected, call(op, a, x)[0].toDoubleArray());
    CudaMath.allowTf32(true);
    double on = worst(expected, call(op, a, x)[0].toDoubleArray());
    assertThat(off).as("error without TF32").isLessThan(1e-5);
    assertThat(on).as("error with TF32").isGreaterThan(1e-4).isLessThan(1e-2);
  }

  private static double worst(double[] expected, double[] got) {
    double worst = 0;
    for (int i = 0; i < got.length; i++) {
      worst = Math.max(worst, Math.abs(got[i] - expected[i]));
    }
    return worst;
  }

  @Test
  void noScoresAreHeldInFloat32() {
    Tensor[] x = new Tensor[4];
    for (int i = 0; i < 4; i++) {
      x[i] = normal(i, DType.FLOAT32, 1, 8, 2048, 64).to(AgainstCpu.GPU);
    }
    Attrs a = Attrs.of(0.125, true, 2);
    long one = 8L * 2048 * 64 * 4;
    for (boolean tf32 : new boolean[] {false, true}) {
      CudaMath.allowTf32(tf32);
      CudaMemory.resetPeak(0);
      long before = CudaMemory.stats(0).allocatedBytes();
      try (TensorScope scope = TensorScope.open()) {
        Tensor[] out = call("scaled_dot_product_attention", a, x[1], x[2], x[3]);
        call("scaled_dot_product_attention_backward", a, x[0], x[1], x[2], x[3], out[0], out[1]);
      }
      // The result, three gradients, and some numbers a query; the scores would be 32 times one.
      assertThat(CudaMemory.stats(0).peakAllocatedBytes() - before)
          .as("bytes at most, TF32 %s", tf32)
          .isBetween(4 * one, 5 * one);
    }
  }

  @Test
  void gradientsAreTheSameBitsEveryTime() {
    gradientsRepeat(DType.BFLOAT16);
    gradientsRepeat(DType.FLOAT32);
    CudaMath.allowTf32(true);
    gradientsRepeat(DType.FLOAT32);
  }

  private static void gradientsRepeat(DType t) {
    Tensor[] x = new Tensor[4];
    for (int i = 0; i < 4; i++) {
      x[i] = normal(i, t, 2, 4, 512, 64).to(AgainstCpu.GPU);
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
