package dev.weft.tensor.op;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.weft.nn.Autocast;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import org.junit.jupiter.api.Test;

class AutocastTest {
  private final Tensor x = Tensor.of(new float[] {1, 2, 3, 4}, 2, 2);
  private final Tensor w = Tensor.of(new float[] {0.5f, -1, 2, 0.25f}, 2, 2).requiresGrad(true);

  @Test
  void productsAreLowAndSoftmaxIsFull() {
    try (TensorScope scope = TensorScope.open();
        Autocast cast = Autocast.to(DType.BFLOAT16)) {
      Tensor y = MatMul.linear(x, w, null);
      assertThat(y.dtype()).isEqualTo(DType.BFLOAT16);
      assertThat(y.softmax(-1).dtype()).isEqualTo(DType.FLOAT32);
      assertThat(Pointwise.add(y, x).dtype()).as("promotion").isEqualTo(DType.FLOAT32);
      assertThat(Losses.crossEntropy(y, Tensor.of(new long[] {0, 1}, 2)).dtype())
          .isEqualTo(DType.FLOAT32);
    }
    assertThat(MatMul.linear(x, w, null).dtype()).as("after it").isEqualTo(DType.FLOAT32);
  }

  @Test
  void gradientsComeInTheParametersDtype() {
    try (TensorScope scope = TensorScope.open()) {
      Tensor loss;
      try (Autocast cast = Autocast.to(DType.BFLOAT16)) {
        // Used twice: one cast, and the sum of both gradients.
        Tensor y = MatMul.linear(MatMul.linear(x, w, null), w, null);
        loss = y.to(DType.FLOAT32).sum();
      }
      loss.backward();
      assertThat(w.grad().dtype()).isEqualTo(DType.FLOAT32);
      Tensor v = w.detach().requiresGrad(true);
      MatMul.linear(MatMul.linear(x, v, null), v, null).sum().backward();
      float[] full = v.grad().toFloatArray();
      float[] mixed = w.grad().toFloatArray();
      for (int i = 0; i < full.length; i++) {
        assertThat(mixed[i]).isCloseTo(full[i], within(0.02f * Math.abs(full[i]) + 0.02f));
      }
    }
  }

  @Test
  void doubleAndIntegersStay() {
    try (Autocast cast = Autocast.to(DType.FLOAT16)) {
      Tensor d = x.to(DType.FLOAT64);
      assertThat(Autograd.noGrad(() -> MatMul.mm(d, d)).dtype()).isEqualTo(DType.FLOAT64);
    }
  }

  @Test
  void refusesAWideDtype() {
    assertThatThrownBy(() -> Autocast.to(DType.FLOAT32))
        .hasMessageContaining("float32")
        .hasMessageContaining("bfloat16 or float16");
  }
}
