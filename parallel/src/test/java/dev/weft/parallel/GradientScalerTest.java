package dev.weft.parallel;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.parallel.SmallModels.blocks;
import static dev.weft.parallel.SmallModels.gradients;
import static dev.weft.parallel.SmallModels.loss;
import static dev.weft.parallel.SmallModels.parameters;
import static dev.weft.parallel.SmallModels.rows;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.offset;

import dev.weft.c10d.LocalWorld;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Sequential;
import dev.weft.optim.Clipping;
import dev.weft.optim.Sgd;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Pointwise;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class GradientScalerTest {
  private static Sgd sgd(Sequential m) {
    return Sgd.over(m.parameters()).learningRate(0.1).build();
  }

  @Test
  void aScaledStepIsTheStepWithoutScaling() {
    Sequential plain = blocks(2, 4, 6);
    Sequential scaled = blocks(2, 4, 6);
    Sgd plainStep = sgd(plain);
    Sgd scaledStep = sgd(scaled);
    GradientScaler scaler = GradientScaler.of().withScale(1024);
    loss(plain.call(rows(0, 4, 4))).backward();
    double norm = Clipping.gradNorm(plain.parameters());
    scaler.scale(loss(scaled.call(rows(0, 4, 4)))).backward();
    assertThat(scaler.unscale(scaledStep)).isCloseTo(norm, offset(1e-9));
    plainStep.step();
    assertThat(scaler.step(scaledStep)).isTrue();
    SmallModels.assertClose(parameters(scaled), parameters(plain));
  }

  /** Gradients below the smallest float16 are lost without a scale. */
  @Test
  void smallFloat16GradientsSurvive() {
    List<float[]> got = new ArrayList<>();
    for (double scale : new double[] {1, 1024}) {
      Tensor leaf = Tensor.of(new float[] {1, 2}, 2).requiresGrad(true);
      Sgd step = Sgd.over(List.of(leaf)).learningRate(1).build();
      Tensor low = Pointwise.mul(Pointwise.mul(leaf.to(DType.FLOAT16), 1e-4), 1e-4);
      GradientScaler scaler = GradientScaler.of().withScale(scale);
      scaler.scale(low.to(DType.FLOAT32).sum()).backward();
      assertThat(scaler.step(step)).isTrue();
      got.add(leaf.grad().toFloatArray());
    }
    assertThat(got.get(0)).containsOnly(0f);
    assertThat(got.get(1)).containsExactly(new float[] {1e-8f, 1e-8f}, offset(1e-10f));
  }

  /** An infinite gradient in one rank's shard: no rank updates, and all halve the scale. */
  @Test
  void anOverflowOnOneRankSkipsTheUpdateOnAll() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2));
          Sequential m = blocks(1, 4, 6);
          FullySharded all = FullySharded.fullyShard(m, mesh);
          List<float[]> before = parameters(m);
          Sgd step = sgd(m);
          GradientScaler scaler = GradientScaler.of().withScale(4).withGrowthInterval(2);
          Tensor bad = Pointwise.mul(rows(0, 2, 4), rank == 1 ? Float.POSITIVE_INFINITY : 1);
          scaler.scale(loss(all.call(bad))).backward();
          assertThat(scaler.step(step)).isFalse();
          scaler.update();
          assertThat(scaler.scale()).isEqualTo(2);
          SmallModels.assertClose(parameters(m), before);
          for (int i = 0; i < 2; i++) {
            step.zeroGrad();
            scaler.scale(loss(all.call(rows(0, 2, 4)))).backward();
            assertThat(scaler.step(step)).isTrue();
            scaler.update();
          }
          assertThat(scaler.scale()).isEqualTo(4);
          assertThat(gradients(m)).isNotEmpty();
        });
  }

  /** Stages of a pipeline hold different gradients: they agree through their group. */
  @Test
  void ranksWithOtherParametersAgreeThroughTheirGroup() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("pp", 2));
          Sequential m = blocks(1, 4, 6);
          Sgd step = sgd(m);
          GradientScaler scaler = GradientScaler.of(mesh.getGroup());
          Tensor x = Pointwise.mul(rows(0, 2, 4), rank == 0 ? Float.NaN : 1);
          scaler.scale(loss(m.call(x))).backward();
          assertThat(scaler.step(step)).isFalse();
          assertThat(scaler.scalars()).containsEntry("goodUpdates", 0.0);
        });
  }

  @Test
  void wrongOrderAndBadOptionsAreRefused() {
    Sequential m = blocks(1, 4, 6);
    Sgd step = sgd(m);
    GradientScaler scaler = GradientScaler.of();
    assertThatThrownBy(scaler::update)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("no step");
    double unused = scaler.unscale(step);
    assertThatThrownBy(() -> scaler.unscale(step))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("twice");
    assertThatThrownBy(() -> GradientScaler.of().withScale(0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("scale is 0");
  }
}
