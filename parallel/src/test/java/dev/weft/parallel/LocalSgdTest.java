package dev.weft.parallel;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.parallel.SmallModels.blocks;
import static dev.weft.parallel.SmallModels.loss;
import static dev.weft.parallel.SmallModels.parameters;
import static dev.weft.parallel.SmallModels.rows;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.offset;

import dev.weft.c10d.LocalWorld;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Module;
import dev.weft.nn.Sequential;
import dev.weft.optim.Optimizer;
import dev.weft.optim.Sgd;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.InPlace;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LocalSgdTest {
  private static final int WIDTH = 5;
  private static final double RATE = 0.1;

  private static void innerStep(Module m, int island, int step) {
    int first = 10 * step + 2 * island;
    loss(m.call(rows(first, first + 2, WIDTH))).backward();
    for (Tensor p : m.parameters()) {
      Tensor unused = Autograd.noGrad(() -> InPlace.sub(p, p.grad(), RATE));
    }
    m.zeroGrad();
  }

  /** Two islands, as one thread and plain arrays have them. */
  private static List<float[]> simulated(
      int steps, int innerSteps, double outerRate, double momentum) {
    List<Sequential> islands = List.of(blocks(2, WIDTH, 7), blocks(2, WIDTH, 7));
    List<float[]> agreed = parameters(islands.get(0));
    List<double[]> velocity = new ArrayList<>();
    agreed.forEach(a -> velocity.add(new double[a.length]));
    for (int step = 0; step < steps; step++) {
      for (int i = 0; i < 2; i++) {
        innerStep(islands.get(i), i, step);
      }
      if ((step + 1) % innerSteps != 0) {
        continue;
      }
      List<float[]> a = parameters(islands.get(0));
      List<float[]> b = parameters(islands.get(1));
      for (int p = 0; p < agreed.size(); p++) {
        float[] values = agreed.get(p);
        for (int k = 0; k < values.length; k++) {
          double g = values[k] - (a.get(p)[k] + b.get(p)[k]) / 2.0;
          velocity.get(p)[k] = momentum * velocity.get(p)[k] + g;
          values[k] -= (float) (outerRate * (g + momentum * velocity.get(p)[k]));
        }
        for (Sequential m : islands) {
          Tensor to = m.parameters().get(p);
          Tensor unused =
              Autograd.noGrad(() -> InPlace.copy(to, Tensor.of(values.clone(), to.shape())));
        }
      }
    }
    return agreed;
  }

  private static LocalSgd outer(Module m, DeviceMesh mesh, int inner, double rate, double mu) {
    return mu == 0
        ? LocalSgd.averaging(m.parameters(), mesh, inner)
        : LocalSgd.diLoCo(m.parameters(), mesh, inner, rate, mu, null);
  }

  @ParameterizedTest
  @CsvSource({"1,1,0", "3,1,0", "3,0.7,0.9"})
  void theOuterStepIsThatOfThePaper(int innerSteps, double outerRate, double momentum) {
    List<float[]> want = simulated(9, innerSteps, outerRate, momentum);
    LocalWorld.run(
        2,
        rank -> {
          // Other first parameters on the second island, which do not count.
          Sequential m = blocks(2, WIDTH, 7);
          if (rank == 1) {
            m.parameters().forEach(p -> Autograd.noGrad(() -> InPlace.mul(p, 3)));
          }
          List<Boolean> agreed = new ArrayList<>();
          try (LocalSgd outer =
              outer(m, initDeviceMesh("cpu", dim("dp", 2)), innerSteps, outerRate, momentum)) {
            for (int step = 0; step < 9; step++) {
              innerStep(m, rank, step);
              agreed.add(outer.step());
            }
          }
          assertThat(agreed.indexOf(true)).isEqualTo(innerSteps - 1);
          List<float[]> got = parameters(m);
          for (int i = 0; i < want.size(); i++) {
            assertThat(got.get(i)).containsExactly(want.get(i), offset(1e-5f));
          }
        });
  }

  /** Islands of two ranks each, whose parameters are sharded over the island. */
  @Test
  void islandsMayBeSharded() {
    List<float[]> want = simulated(6, 3, 0.7, 0.9);
    LocalWorld.run(
        4,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("island", 2), dim("shard", 2));
          Sequential m = blocks(2, WIDTH, 7);
          FullySharded unused = FullySharded.fullyShard(m, mesh.get("shard"));
          Optimizer inner = Sgd.over(m.parameters()).learningRate(RATE).build();
          LocalSgd outer = LocalSgd.diLoCo(m.parameters(), mesh.get("island"), 3);
          for (int step = 0; step < 6; step++) {
            int first = 10 * step + 2 * mesh.coordinate(0) + mesh.coordinate(1);
            loss(m.call(rows(first, first + 1, WIDTH))).backward();
            inner.step();
            inner.zeroGrad();
            boolean done = outer.step();
            assertThat(done).isEqualTo(step % 3 == 2);
          }
          List<float[]> got = parameters(m);
          for (int i = 0; i < want.size(); i++) {
            assertThat(got.get(i)).containsExactly(want.get(i), offset(1e-5f));
          }
        });
  }

  /** Sent in bfloat16 the islands agree to the bit, and nearly on what float32 gives. */
  @Test
  void movesCanBeSentInHalfPrecision() {
    List<float[]> want = simulated(6, 3, 0.7, 0.9);
    List<List<float[]>> got =
        LocalWorld.call(
            2,
            rank -> {
              Sequential m = blocks(2, WIDTH, 7);
              LocalSgd outer =
                  LocalSgd.diLoCo(
                      m.parameters(),
                      initDeviceMesh("cpu", dim("dp", 2)),
                      3,
                      0.7,
                      0.9,
                      DType.BFLOAT16);
              for (int step = 0; step < 6; step++) {
                innerStep(m, rank, step);
                boolean unused = outer.step();
              }
              return parameters(m);
            });
    for (int i = 0; i < want.size(); i++) {
      assertThat(got.get(0).get(i)).containsExactly(got.get(1).get(i));
      assertThat(got.get(0).get(i)).containsExactly(want.get(i), offset(2e-3f));
    }
  }

  /** A run that is cut in the middle of a round goes on to the same bits. */
  @Test
  void theStateCarriesOver() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2));
          Sequential straight = blocks(2, WIDTH, 7);
          LocalSgd outer = LocalSgd.diLoCo(straight.parameters(), mesh, 2);
          Sequential cut = null;
          for (int step = 0; step < 8; step++) {
            innerStep(straight, rank, step);
            boolean unused = outer.step();
            if (step == 4) {
              List<float[]> own = parameters(straight);
              Sequential again = blocks(2, WIDTH, 7);
              LocalSgd resumed = LocalSgd.diLoCo(again.parameters(), mesh, 2);
              resumed
                  .state()
                  .forEach(
                      (name, t) -> Autograd.noGrad(() -> InPlace.copy(t, outer.state().get(name))));
              resumed.resume(outer.steps());
              for (int i = 0; i < own.size(); i++) {
                Tensor p = again.parameters().get(i);
                Tensor value = Tensor.of(own.get(i), p.shape());
                Tensor done = Autograd.noGrad(() -> InPlace.copy(p, value));
              }
              for (int rest = 5; rest < 8; rest++) {
                innerStep(again, rank, rest);
                unused = resumed.step();
              }
              cut = again;
            }
          }
          List<float[]> want = parameters(straight);
          List<float[]> got = parameters(cut);
          for (int i = 0; i < want.size(); i++) {
            assertThat(got.get(i)).containsExactly(want.get(i));
          }
        });
  }

  @Test
  void badNumbersAreRefused() {
    LocalWorld.run(
        1,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("a", 1), dim("b", 1));
          List<Tensor> parameters = blocks(1, 2, 2).parameters();
          assertThatThrownBy(() -> LocalSgd.averaging(parameters, mesh, 2))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("2 dimensions");
          assertThatThrownBy(() -> LocalSgd.averaging(parameters, mesh.get("a"), 0))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("innerSteps is 0");
          assertThatThrownBy(() -> LocalSgd.diLoCo(parameters, mesh.get("a"), 2, 1, 1, null))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("momentum 1.0");
          assertThatThrownBy(() -> LocalSgd.diLoCo(parameters, mesh.get("a"), 2, 1, 0, DType.INT32))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("sentDtype is");
        });
  }
}
