package dev.weft.profiler;

import static dev.weft.dtensor.tp.Styles.colwise;
import static dev.weft.dtensor.tp.Styles.rowwise;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.profiler.CommDebug.Phase.BACKWARD;
import static dev.weft.profiler.CommDebug.Phase.FORWARD;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.tp.Parallelize;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.profiler.CommDebug.Traffic;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Reductions;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Counts for the same model by PyTorch's CommDebugMode: 1 all_reduce forward, 1 backward. */
class CommDebugTest {
  private static final int ROWS = 4;
  private static final int WIDTH = 8;
  private static final long BYTES = 4L * ROWS * WIDTH;

  /** Two linear layers with a ReLU between. */
  private static final class Mlp extends Module {
    private final Linear up = registerModule("up", linear(2 * WIDTH, WIDTH));
    private final Linear down = registerModule("down", linear(WIDTH, 2 * WIDTH));

    private static Linear linear(int out, int in) {
      return new Linear(Tensor.of(new float[out * in], out, in), null);
    }

    @Override
    protected Tensor forward(Tensor... inputs) {
      return down.call(Activations.relu(up.call(inputs[0])));
    }
  }

  private static final class Net extends Module {
    private final Mlp mlp = registerModule("mlp", new Mlp());

    @Override
    protected Tensor forward(Tensor... inputs) {
      return mlp.call(inputs[0]);
    }
  }

  private static Net parallel() {
    Net net = new Net();
    return Parallelize.parallelizeModule(
        net,
        initDeviceMesh("cpu", dim("tp", 2)),
        Map.of("mlp.up", colwise(), "mlp.down", rowwise()));
  }

  private static Tensor input() {
    Tensor x = Tensor.of(new float[ROWS * WIDTH], ROWS, WIDTH);
    x.requiresGrad(true);
    return x;
  }

  @Test
  void aTensorParallelMlpCountsAsInPyTorch() {
    LocalWorld.run(
        2,
        rank -> {
          Net net = parallel();
          try (CommDebug comm = CommDebug.of(net)) {
            Reductions.sum(net.call(input())).backward();
            assertThat(comm.counts()).isEqualTo(Map.of("all_reduce", 2L));
            Traffic one = new Traffic(1, BYTES);
            assertThat(comm.traffic("mlp.down", FORWARD)).isEqualTo(Map.of("all_reduce", one));
            assertThat(comm.traffic("mlp.down", BACKWARD)).isEmpty();
            assertThat(comm.traffic("mlp.up", FORWARD)).isEmpty();
            assertThat(comm.traffic("mlp.up", BACKWARD)).isEqualTo(Map.of("all_reduce", one));
            assertThat(comm.traffic("mlp", FORWARD)).isEqualTo(Map.of("all_reduce", one));
            assertThat(comm.toString().lines())
                .containsExactly(
                    "Net",
                    "  - forward: 1 all_reduce, 128 B",
                    "  - backward: 1 all_reduce, 128 B",
                    "  mlp: Mlp",
                    "    - forward: 1 all_reduce, 128 B",
                    "    - backward: 1 all_reduce, 128 B",
                    "    up: Linear",
                    "      - backward: 1 all_reduce, 128 B",
                    "    down: Linear",
                    "      - forward: 1 all_reduce, 128 B");
            comm.reset();
            assertThat(comm.total()).isZero();
          }
        });
  }

  @Test
  void nothingIsCountedOnceItIsClosed() {
    LocalWorld.run(
        2,
        rank -> {
          Net net = parallel();
          CommDebug comm = CommDebug.of(net);
          comm.close();
          Reductions.sum(net.call(input())).backward();
          assertThat(comm.total()).isZero();
        });
  }

  @Test
  void anUnknownModuleIsRefused() {
    try (CommDebug comm = CommDebug.of(new Net())) {
      assertThatThrownBy(() -> comm.traffic("mlp.sideways", FORWARD))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("mlp.sideways");
    }
  }
}
