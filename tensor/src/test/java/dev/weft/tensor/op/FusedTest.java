package dev.weft.tensor.op;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Operators in one pass give what the operators that they stand for give. */
class FusedTest {
  private static Tensor random(long seed, DType dtype, long... shape) {
    return Casts.to(Random.randn(new Generator(seed), DType.FLOAT32, shape), dtype);
  }

  private static void close(Tensor got, Tensor expected, double tolerance) {
    assertThat(got.shape()).isEqualTo(expected.shape());
    assertThat(got.dtype()).isEqualTo(expected.dtype());
    assertThat(got.toDoubleArray())
        .usingComparatorWithPrecision(tolerance)
        .containsExactly(expected.toDoubleArray());
  }

  @Test
  void attentionIsSoftmaxOfScoresTimesValues() {
    for (DType dtype : new DType[] {DType.FLOAT64, DType.FLOAT32, DType.BFLOAT16}) {
      double tolerance = dtype == DType.BFLOAT16 ? 2e-2 : dtype == DType.FLOAT32 ? 2e-6 : 1e-12;
      Tensor q = random(1, dtype, 2, 3, 7, 4);
      Tensor k = random(2, dtype, 2, 3, 7, 4);
      Tensor v = random(3, dtype, 2, 3, 7, 4);
      Tensor causal = Attention.scaledDotProduct(q, k, v, Attention.causalMask(7, 7));
      close(Attention.scaledDotProduct(q, k, v, true, 2), causal, tolerance);
      close(
          Attention.scaledDotProduct(q, k, v, false, 2),
          Attention.scaledDotProduct(q, k, v, null),
          tolerance);
      Tensor inner =
          Attention.scaledDotProduct(
              Views.transpose(q, 1, 2),
              Views.transpose(k, 1, 2),
              Views.transpose(v, 1, 2),
              true,
              1);
      close(Views.transpose(inner, 1, 2), causal, tolerance);
    }
  }

  /** Of other lengths, and with a value whose rows share memory: float32 agrees with float64. */
  @Test
  void attentionInFloat32AgreesWithFloat64() {
    for (boolean causal : new boolean[] {true, false}) {
      Tensor[][] gradients = new Tensor[2][];
      Tensor[] results = new Tensor[2];
      for (int i = 0; i < 2; i++) {
        DType dtype = i == 0 ? DType.FLOAT32 : DType.FLOAT64;
        Tensor q = Casts.to(random(1, DType.FLOAT32, 2, 70, 3, 8), dtype).requiresGrad(true);
        Tensor k = Casts.to(random(2, DType.FLOAT32, 2, 41, 3, 8), dtype).requiresGrad(true);
        Tensor v = Casts.to(random(3, DType.FLOAT32, 2, 1, 3, 8), dtype).requiresGrad(true);
        Tensor y = Attention.scaledDotProduct(q, k, Views.expand(v, 2, 41, 3, 8), causal, 1);
        y.backward(Casts.to(random(4, DType.FLOAT32, 2, 70, 3, 8), dtype));
        results[i] = y.detach();
        gradients[i] = new Tensor[] {q.grad(), k.grad(), v.grad()};
      }
      close(Casts.to(results[0], DType.FLOAT64), results[1], 2e-6);
      for (int i = 0; i < 3; i++) {
        close(Casts.to(gradients[0][i], DType.FLOAT64), gradients[1][i], i == 2 ? 1e-4 : 5e-6);
      }
    }
  }

  @Test
  void attentionRefusesShapesThatDoNotFit() {
    Tensor q = random(1, DType.FLOAT32, 2, 3, 7, 4);
    assertThatThrownBy(
            () -> Attention.scaledDotProduct(q, random(2, DType.FLOAT32, 2, 2, 7, 4), q, false, 2))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("key has shape [2, 2, 7, 4]; expected [2, 3, 7, 4]");
    Tensor thin = random(2, DType.FLOAT32, 2, 3, 7, 0);
    assertThatThrownBy(() -> Attention.scaledDotProduct(thin, thin, thin, false, 2))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("query has shape [2, 3, 7, 0]; expected a width above 0");
    assertThatThrownBy(() -> Attention.scaledDotProduct(q, q, q, false, 3))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("positions run along dimension 3; expected 1 or 2");
  }

  @Test
  void rmsNormInAnotherDTypeIsRoundedOnce() {
    Tensor x = random(1, DType.FLOAT32, 5, 12).requiresGrad(true);
    Tensor w = random(2, DType.FLOAT32, 12).requiresGrad(true);
    long[] shape = {12};
    Tensor y = Norms.rmsNorm(x, shape, w, 1e-5, DType.BFLOAT16);
    close(y, Casts.to(Norms.rmsNorm(x, shape, w, 1e-5), DType.BFLOAT16), 0);
    Tensor g = random(3, DType.BFLOAT16, 5, 12);
    y.backward(g);
    Tensor x2 = x.copy().detach().requiresGrad(true);
    Tensor w2 = w.copy().detach().requiresGrad(true);
    Norms.rmsNorm(x2, shape, w2, 1e-5).backward(Casts.to(g, DType.FLOAT32));
    close(x.grad(), x2.grad(), 1e-6);
    close(w.grad(), w2.grad(), 1e-6);
    assertThatThrownBy(() -> Norms.rmsNorm(x, shape, w, 1e-5, DType.INT64))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("dtype int64 of the result");
  }

  @Test
  void swigluIsSiluTimesTheOther() {
    Tensor a = random(1, DType.FLOAT32, 5, 9);
    Tensor b = random(2, DType.FLOAT32, 5, 9);
    close(Gated.swiglu(a, b), Pointwise.mul(Activations.silu(a), b), 1e-6);
    assertThatThrownBy(() -> Gated.swiglu(a, Views.t(b)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("input 1 has shape [9, 5]; expected [5, 9]");
  }

  @Test
  void squaresAndClippingOfManyTensors() {
    List<Tensor> many =
        List.of(Tensor.of(new float[] {3, 0}, 2), Tensor.of(new double[] {0, 4}, 2));
    Tensor square = Foreach.squares(many);
    assertThat(square.item()).isEqualTo(25);
    Foreach.clip(many, square, 10);
    assertThat(many.get(0).toDoubleArray()).containsExactly(3, 0);
    Foreach.clip(many, square, 1);
    assertThat(many.get(0).toDoubleArray()[0]).isCloseTo(0.6, within(1e-6));
    assertThat(many.get(1).toDoubleArray()[1]).isCloseTo(0.8, within(1e-6));
    assertThat(many.get(1).version()).isPositive();
    assertThatThrownBy(() -> Foreach.squares(List.of()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("there are no tensors");
  }

  @Test
  void adamwOfManyIsAdamwOfEach() {
    Tensor[] together = new Tensor[8];
    Tensor[] apart = new Tensor[8];
    for (int i = 0; i < 8; i++) {
      together[i] = random(i, DType.FLOAT32, 3 + i / 4);
      if (i % 4 == 3) {
        together[i] = Unary.square(together[i]);
      }
      apart[i] = together[i].copy();
    }
    int[] before = java.util.Arrays.stream(together).mapToInt(Tensor::version).toArray();
    Updates.adamwAll(together, 0.1, 0.9, 0.99, 1e-8, 0.01, 3);
    for (int i = 0; i < 8; i += 4) {
      Tensor unused =
          Updates.adamw(
              apart[i], apart[i + 1], apart[i + 2], apart[i + 3], 0.1, 0.9, 0.99, 1e-8, 0.01, 3);
    }
    for (int i = 0; i < 8; i++) {
      assertThat(together[i].toFloatArray()).isEqualTo(apart[i].toFloatArray());
      assertThat(together[i].version() - before[i])
          .as("changes of tensor %d", i)
          .isEqualTo(i % 4 == 1 ? 0 : 1);
    }
  }
}
