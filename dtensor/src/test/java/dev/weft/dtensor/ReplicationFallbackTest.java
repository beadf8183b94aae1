package dev.weft.dtensor;

import static dev.weft.dtensor.Placements.shard;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.LocalWorld;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Regions;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Op;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** P17: an operator without a rule is refused, or runs on whole tensors where that is allowed. */
class ReplicationFallbackTest {
  private static final Op REVERSED =
      Op.function(
              "test.reversed",
              (in, a) -> TensorSpec.one(in[0].shape(), in[0].dtype()),
              (in, out, a) -> {
                long n = in[0].size(0);
                for (long i = 0; i < n; i++) {
                  Regions.copy(
                      Regions.narrow(in[0], 0, i, 1), Regions.narrow(out[0], 0, n - 1 - i, 1));
                }
              })
          .notDifferentiable();
  private static final Op WRITING =
      Op.inPlace(
              "test.writing_",
              (in, a) -> TensorSpec.one(in[0].shape(), in[0].dtype()),
              (in, out, a) -> Regions.zero(out[0]))
          .notDifferentiable();

  private final Consumer<String> before = ReplicationFallback.notices;

  @AfterEach
  void restore() {
    ReplicationFallback.notices = before;
    DTensor.allowReplicationFallback(false);
  }

  @Test
  void runsOnWholeTensorsAndSaysSoOnceWithBytes() {
    List<String> said = Collections.synchronizedList(new ArrayList<>());
    ReplicationFallback.notices = said::add;
    assertThat(DTensor.allowReplicationFallback(true)).isFalse();
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2);
          for (int n : new int[] {4, 6}) {
            float[] values = new float[n];
            for (int i = 0; i < n; i++) {
              values[i] = i;
            }
            DTensor x =
                DTensor.distributeTensor(Tensor.of(values, n), mesh, List.of(shard(0)), null);
            Tensor y = Dispatcher.call(REVERSED, Attrs.NONE, x);
            assertThat(((DTensor) y).placements()).containsExactly(Replicate.INSTANCE);
            assertThat(y.toFloatArray()[0]).isEqualTo(n - 1);
          }
        });
    assertThat(said).hasSize(1);
    assertThat(said.get(0))
        .contains("test.reversed")
        .contains("S(0)")
        .containsPattern("moves (8|12) B");
  }

  @Test
  void aTargetInPlaceMustBeWhole() {
    DTensor.allowReplicationFallback(true);
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2);
          DTensor x =
              DTensor.distributeTensor(
                  Tensor.of(new float[] {1, 2}, 2), mesh, List.of(shard(0)), null);
          assertThatThrownBy(() -> Dispatcher.call(WRITING, Attrs.NONE, x))
              .isInstanceOf(UnsupportedOperationException.class)
              .hasMessageContaining("test.writing_")
              .hasMessageContaining("Sharding.register");
          DTensor whole = x.redistribute(Replicate.INSTANCE);
          assertThat(Dispatcher.call(WRITING, Attrs.NONE, whole).toFloatArray()).containsOnly(0);
        });
  }

  @Test
  void isRefusedOtherwise() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2);
          DTensor x =
              DTensor.distributeTensor(
                  Tensor.of(new float[] {1, 2}, 2), mesh, List.of(shard(0)), null);
          assertThatThrownBy(() -> Dispatcher.call(REVERSED, Attrs.NONE, x))
              .isInstanceOf(UnsupportedOperationException.class)
              .hasMessageContaining("allowReplicationFallback");
        });
  }
}
