package dev.weft.dtensor.tp;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.DTensor;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Activations;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ParallelizeTest {
  private static final class TwoLayers extends Module {
    final Linear up = registerModule("up", new Linear(numbers(6, 3), numbers(6)));
    final Linear down = registerModule("down", new Linear(numbers(3, 6), numbers(3)));

    @Override
    protected Tensor forward(Tensor... inputs) {
      return down.call(Activations.relu(up.call(inputs[0])));
    }
  }

  private static Tensor numbers(long... shape) {
    int n = (int) dev.weft.tensor.Shapes.numel(shape);
    float[] values = new float[n];
    for (int i = 0; i < n; i++) {
      values[i] = (i * 7 % 11) - 4;
    }
    return Tensor.of(values, shape);
  }

  /** Ranks may hold their plan in maps of different order. */
  @Test
  void theOrderOfThePlanDoesNotMatter() {
    float[] alone = new TwoLayers().call(numbers(2, 3)).toFloatArray();
    LocalWorld.run(
        2,
        rank -> {
          Map<String, ParallelStyle> plan = new LinkedHashMap<>();
          plan.put(rank == 0 ? "up" : "down", rank == 0 ? Styles.colwise() : Styles.rowwise());
          plan.put(rank == 0 ? "down" : "up", rank == 0 ? Styles.rowwise() : Styles.colwise());
          TwoLayers model =
              Parallelize.parallelizeModule(
                  new TwoLayers(), initDeviceMesh("cpu", dim("tp", 2)), plan);
          assertThat(model.call(numbers(2, 3)).toFloatArray()).containsExactly(alone);
        });
  }

  @Test
  void headsThatTheRanksCannotShareAreRefused() {
    LocalWorld.run(
        2,
        rank -> {
          var mesh = initDeviceMesh("cpu", dim("tp", 2));
          assertThatThrownBy(
                  () ->
                      Parallelize.parallelizeModule(
                          new TwoLayers(), mesh, Map.of("up", Styles.colwise().heads(3))))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("'up' has 3 heads")
              .hasMessageContaining("2 ranks");
          TwoLayers fits =
              Parallelize.parallelizeModule(
                  new TwoLayers(), mesh, Map.of("up", Styles.colwise().heads(2)));
          assertThat(fits.parameter("up.weight")).isInstanceOf(DTensor.class);
        });
  }

  /** P22: a tied parameter stays tied. */
  @Test
  void tiesSurvive() {
    final class Tied extends Module {
      final Linear a = registerModule("a", new Linear(numbers(4, 4), null));
      final Linear b = registerModule("b", new Linear(a.parameter("weight"), null));

      @Override
      protected Tensor forward(Tensor... inputs) {
        return b.call(a.call(inputs[0]));
      }
    }
    LocalWorld.run(
        2,
        rank -> {
          Tied model =
              Parallelize.parallelizeModule(
                  new Tied(),
                  initDeviceMesh("cpu", dim("tp", 2)),
                  Map.of("a", Styles.colwise().output(dev.weft.dtensor.Placements.replicate())));
          assertThat(model.parameter("a.weight")).isInstanceOf(DTensor.class);
          assertThat(model.parameter("b.weight")).isSameAs(model.parameter("a.weight"));
        });
  }

  /** P22: a tie that two styles cut differently is refused. */
  @Test
  void aTieIsCutOneWayOnly() {
    final class Tied extends Module {
      final Linear a = registerModule("a", new Linear(numbers(4, 4), null));
      final Linear b = registerModule("b", new Linear(a.parameter("weight"), null));

      @Override
      protected Tensor forward(Tensor... inputs) {
        return b.call(a.call(inputs[0]));
      }
    }
    LocalWorld.run(
        2,
        rank ->
            assertThatThrownBy(
                    () ->
                        Parallelize.parallelizeModule(
                            new Tied(),
                            initDeviceMesh("cpu", dim("tp", 2)),
                            Map.of("a", Styles.colwise(), "b", Styles.rowwise())))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("b.weight")
                .hasMessageContaining("tied"));
  }

  @Test
  void aPatternThatMatchesNothingIsNamed() {
    LocalWorld.run(
        2,
        rank -> {
          TwoLayers model = new TwoLayers();
          assertThatThrownBy(
                  () ->
                      Parallelize.parallelizeModule(
                          model,
                          initDeviceMesh("cpu", dim("tp", 2)),
                          Map.of("up", Styles.colwise(), "layers.*.wq", Styles.colwise())))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("layers.*.wq")
              .hasMessageContaining("down");
          assertThat(model.parameter("up.weight")).as("unchanged").isNotInstanceOf(DTensor.class);
        });
  }
}
