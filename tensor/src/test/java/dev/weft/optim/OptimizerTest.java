package dev.weft.optim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.LiveBytes;
import dev.weft.tensor.op.Casts;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class OptimizerTest {
  private static Tensor parameter(DType dtype, double... values) {
    return Casts.to(Tensor.of(values, values.length), dtype).requiresGrad(true);
  }

  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"FLOAT64", "FLOAT32", "BFLOAT16"})
  void adamWFollowsItsFormula(DType dtype) {
    Tensor p = parameter(dtype, 0.5, -1);
    AdamW adam = AdamW.over(List.of(p)).learningRate(0.1).betas(0.9, 0.95).weightDecay(0.1).build();
    double[] x = {0.5, -1};
    double[] m = new double[2];
    double[] v = new double[2];
    for (int k = 1; k <= 3; k++) {
      double[] g = {0.25 * k, -0.5};
      p.setGrad(Casts.to(Tensor.of(g), dtype));
      adam.step();
      for (int i = 0; i < 2; i++) {
        x[i] *= 1 - 0.1 * 0.1;
        m[i] = 0.9 * m[i] + 0.1 * g[i];
        v[i] = 0.95 * v[i] + 0.05 * g[i] * g[i];
        x[i] -=
            0.1
                / (1 - Math.pow(0.9, k))
                * m[i]
                / (Math.sqrt(v[i]) / Math.sqrt(1 - Math.pow(0.95, k)) + 1e-8);
      }
      double tolerance = dtype == DType.FLOAT64 ? 1e-14 : dtype == DType.FLOAT32 ? 1e-6 : 2e-2;
      assertThat(p.toDoubleArray()).containsExactly(x, within(tolerance));
    }
  }

  @Test
  void decayCanBeLeftOutForVectors() {
    Tensor vector = parameter(DType.FLOAT32, 1, 1);
    Tensor matrix = Tensor.of(new float[] {1, 1}, 1, 2).requiresGrad(true);
    AdamW adam =
        AdamW.over(List.of(vector, matrix))
            .learningRate(0.5)
            .weightDecay(0.5)
            .decayOnly(t -> t.ndim() > 1)
            .build();
    vector.setGrad(Tensor.of(new float[2], 2));
    matrix.setGrad(Tensor.of(new float[2], 1, 2));
    adam.step();
    assertThat(vector.toFloatArray()).containsExactly(1, 1);
    assertThat(matrix.toFloatArray()).containsExactly(0.75f, 0.75f);
  }

  @Test
  void sgdWithMomentumStartsFromTheGradient() {
    Tensor p = parameter(DType.FLOAT64, 1);
    Sgd sgd = Sgd.over(List.of(p)).learningRate(0.5).momentum(0.5).build();
    p.setGrad(Tensor.of(new double[] {1}, 1));
    sgd.step();
    assertThat(p.item()).isEqualTo(0.5);
    sgd.step(); // momentum 1.5
    assertThat(p.item()).isEqualTo(-0.25);
    assertThatThrownBy(() -> Sgd.over(List.of(p)).build())
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("learningRate");
  }

  @Test
  void stateBelongsToTheOptimiserAndEndsWithIt() {
    Tensor p = parameter(DType.FLOAT32, 1, 2, 3);
    AdamW adam = AdamW.over(List.of(p)).build();
    long before = LiveBytes.settled();
    for (int i = 0; i < 3; i++) {
      try (TensorScope scope = TensorScope.open()) {
        p.mul(2).sum().backward();
        adam.step();
        adam.zeroGrad();
        assertThat(scope.size()).isPositive();
      }
      assertThat(HostMemory.liveBytes()).isEqualTo(before + 24);
    }
    adam.close();
    assertThat(HostMemory.liveBytes()).isEqualTo(before);
  }

  @Test
  void clippingScalesByTheGlobalNorm() {
    Tensor a = parameter(DType.FLOAT32, 0);
    Tensor b = parameter(DType.FLOAT32, 0);
    Tensor unused = parameter(DType.FLOAT32, 0);
    a.setGrad(Tensor.of(new float[] {3}, 1));
    b.setGrad(Tensor.of(new float[] {4}, 1));
    List<Tensor> all = List.of(a, b, unused);
    assertThat(Clipping.clipGradNorm(all, 10)).isEqualTo(5);
    assertThat(a.grad().item()).isEqualTo(3);
    assertThat(Clipping.clipGradNorm(all, 1)).isEqualTo(5);
    assertThat(a.grad().item()).isCloseTo(0.6, within(1e-6));
    assertThat(Clipping.gradNorm(all)).isCloseTo(1, within(1e-6));
  }

  @Test
  void theCosineScheduleWarmsUpAndEndsAtZero() {
    Schedule s = Schedule.cosineWithWarmup(3e-3, 5, 40);
    assertThat(s.at(0)).isCloseTo(6e-4, within(1e-18));
    assertThat(s.at(4)).isCloseTo(3e-3, within(1e-18));
    assertThat(s.at(5)).isEqualTo(3e-3);
    assertThat(s.at(40)).isCloseTo(0, within(1e-18));
    assertThat(s.at(22)).isCloseTo(3e-3 * 0.5 * (1 + Math.cos(Math.PI * 17 / 35)), within(1e-18));
    assertThatThrownBy(() -> Schedule.cosineWithWarmup(1, 5, 5))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
