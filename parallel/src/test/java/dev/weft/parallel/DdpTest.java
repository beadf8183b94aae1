package dev.weft.parallel;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.LocalWorld;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Reductions;
import org.junit.jupiter.api.Test;

class DdpTest {
  /** Two layers of which the second may be left out. */
  private static final class TwoPaths extends Module {
    final Linear first =
        registerModule("first", new Linear(Tensor.of(new float[] {1, 2}, 1, 2), null));
    final Linear second =
        registerModule("second", new Linear(Tensor.of(new float[] {3, 4}, 1, 2), null));
    private final boolean both;

    TwoPaths(boolean both) {
      this.both = both;
    }

    @Override
    protected Tensor forward(Tensor... inputs) {
      Tensor y = first.call(inputs[0]);
      return both ? dev.weft.tensor.op.Pointwise.add(y, second.call(inputs[0])) : y;
    }
  }

  @Test
  void gradientsAreAveragedOverTheRanks() {
    LocalWorld.run(
        2,
        rank -> {
          Ddp ddp = Ddp.of(new TwoPaths(true), initDeviceMesh("cpu", dim("dp", 2)));
          Tensor x = Tensor.of(new float[] {1 + rank, 10 * rank}, 1, 2);
          Reductions.sum(ddp.call(x)).backward();
          for (String name : new String[] {"first.weight", "second.weight"}) {
            assertThat(ddp.model().parameter(name).grad().toFloatArray()).containsExactly(1.5f, 5f);
          }
        });
  }

  @Test
  void theFirstRanksParametersAreTaken() {
    LocalWorld.run(
        2,
        rank -> {
          TwoPaths model = new TwoPaths(true);
          Tensor unused =
              model.replaceParameter(
                  "first.weight", Tensor.of(new float[] {7 + rank, 8 + rank}, 1, 2));
          Ddp ddp = Ddp.of(model, initDeviceMesh("cpu", dim("dp", 2)));
          assertThat(ddp.model().parameter("first.weight").toFloatArray()).containsExactly(7, 8);
        });
  }

  /** P27: a parameter that takes no part is named in the same step. */
  @Test
  void unusedParametersAreNamed() {
    assertThatThrownBy(
            () ->
                LocalWorld.run(
                    2,
                    rank -> {
                      Ddp ddp =
                          Ddp.of(new TwoPaths(rank == 1), initDeviceMesh("cpu", dim("dp", 2)));
                      Tensor x = Tensor.of(new float[] {1, 2}, 1, 2);
                      Reductions.sum(ddp.call(x)).backward();
                    }))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("second.weight")
        .hasMessageContaining("rank 0");
  }
}
