package dev.weft.dtensor;

import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;
import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.c10d.LocalWorld;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.MatMul;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Activations that are large beside the weights do not make a rank gather the weights. */
class LargeActivationsTest {
  private static final long TOKENS = 8_192;
  private static final long WIDTH = 32;

  private static DTensor zeros(DeviceMesh mesh, Placement placement, long... shape) {
    Tensor whole = Tensor.of(new float[(int) Shapes.numel(shape)], shape);
    return DTensor.distributeTensor(whole, mesh, List.of(placement), null);
  }

  private static List<String> collectives(Runnable body) {
    List<String> names = new ArrayList<>();
    try (Dispatcher.Installed installed =
        Dispatcher.install(
            call -> {
              if (call.op().name().startsWith("c10d.")) {
                names.add(call.op().name());
              }
              return call.proceed();
            })) {
      body.run();
    }
    return names;
  }

  @Test
  void aPairOfLayersReducesOnceEachWay() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2);
          try (TensorScope scope = TensorScope.open()) {
            DTensor x = zeros(mesh, replicate(), 1, TOKENS, WIDTH);
            DTensor up = zeros(mesh, shard(0), 4 * WIDTH, WIDTH);
            DTensor down = zeros(mesh, shard(1), WIDTH, 4 * WIDTH);
            x.requiresGrad(true);
            up.requiresGrad(true);
            down.requiresGrad(true);
            DTensor[] y = new DTensor[3];
            assertThat(
                    collectives(
                        () -> {
                          y[0] = (DTensor) MatMul.linear(x, up, null);
                          y[1] = (DTensor) MatMul.linear(y[0], down, null);
                        }))
                .isEmpty();
            assertThat(y[0].placements()).containsExactly(shard(2));
            assertThat(y[1].placements().get(0).isPartial()).isTrue();
            assertThat(collectives(() -> y[2] = y[1].redistribute(replicate())))
                .containsExactly("c10d.allreduce_");
            DTensor gradient = zeros(mesh, replicate(), 1, TOKENS, WIDTH);
            assertThat(collectives(() -> y[2].backward(gradient))).isEmpty();
            assertThat(((DTensor) x.grad()).placements().get(0).isPartial()).isTrue();
            assertThat(((DTensor) up.grad()).placements()).containsExactly(shard(0));
            assertThat(((DTensor) down.grad()).placements()).containsExactly(shard(1));
          }
        });
  }
}
