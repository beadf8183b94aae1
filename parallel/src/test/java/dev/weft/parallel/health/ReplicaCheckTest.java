package dev.weft.parallel.health;

import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.parallel.SmallModels.blocks;
import static dev.weft.parallel.SmallModels.weights;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.DTensor;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Module;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.InPlace;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ReplicaCheckTest {
  /** One bit of one element on one rank of four. */
  @Test
  void theParameterAndTheRankThatDiffersAreNamed() {
    LocalWorld.run(
        4,
        rank -> {
          Module model = blocks(2, 5, 3);
          ReplicaCheck check = ReplicaCheck.over(Distributed.world());
          check.check(10, model.namedParameters());
          if (rank == 2) {
            Autograd.noGrad(
                () -> {
                  Tensor unused =
                      InPlace.mul(model.parameter("1.2.weight").slice(1, 2, 3), 1 + 1e-7);
                });
          }
          assertThatThrownBy(() -> check.check(20, model.namedParameters()))
              .isInstanceOf(DesyncException.class)
              .hasMessage(
                  "step 20: parameter '1.2.weight' differs between replicas of group '"
                      + Distributed.world().name()
                      + "': ranks [2] from ranks [0, 1, 3]");
        });
  }

  /** 0 and -0 are equal numbers, and other bits. */
  @Test
  void bitsAreComparedAndATieBlamesNobody() {
    LocalWorld.run(
        2,
        rank -> {
          Tensor zero = Tensor.of(new float[] {rank == 0 ? 0f : -0f}, 1);
          List<Desync> found =
              ReplicaCheck.over(Distributed.world()).differences(Map.of("z", zero));
          assertThat(found).singleElement().asString().endsWith(": ranks [0] against ranks [1]");
        });
  }

  /** Shards may differ along tp; along dp they are replicas. */
  @Test
  void replicasOfDistributedTensorsFollowFromTheirPlacements() {
    LocalWorld.run(
        4,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 2));
          DTensor w = DTensor.distributeTensor(weights(3, 4, 6), mesh, replicate(), shard(0));
          ReplicaCheck check = ReplicaCheck.over();
          assertThat(check.differences(Map.of("w", w))).isEmpty();
          if (rank == 3) {
            Autograd.noGrad(
                () -> {
                  Tensor unused = InPlace.mul(w.toLocal(), 2);
                });
          }
          List<Desync> found = check.differences(Map.of("w", w));
          if (rank % 2 == 0) {
            assertThat(found).isEmpty();
          } else {
            assertThat(found)
                .singleElement()
                .satisfies(d -> assertThat(d.versions()).containsExactly(List.of(1), List.of(3)));
          }
        });
  }

  @Test
  void otherNamesAreRefused() {
    LocalWorld.run(
        2,
        rank -> {
          Tensor t = Tensor.of(new float[] {1}, 1);
          assertThatThrownBy(
                  () -> ReplicaCheck.over(Distributed.world()).differences(Map.of("w" + rank, t)))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("other names on ranks [[0], [1]]");
        });
  }
}
