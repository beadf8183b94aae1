package dev.weft.mesh;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.FakeWorld;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NoSuchElementException;
import org.junit.jupiter.api.Test;

class DeviceMeshTest {
  @Test
  void coordinatesAndGroupsFollowTheNamedDimensions() {
    FakeWorld.run(
        6,
        8,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 4));
          assertThat(mesh.getCoordinate()).containsExactly(1, 2);
          assertThat(mesh.getGroup("tp").ranks()).containsExactly(4, 5, 6, 7);
          assertThat(mesh.getGroup("dp").ranks()).containsExactly(2, 6);
          assertThat(mesh.getLocalRank("tp")).isEqualTo(2);
          assertThat(mesh.get("tp").ranks()).containsExactly(4, 5, 6, 7);
          assertThat(mesh.flatten().dimNames()).containsExactly("dp_tp");
          assertThat(mesh).hasToString("DeviceMesh(cpu, (dp=2, tp=4))");
        });
  }

  /** P43: any order of names gives the transposed sub-mesh, also over dimensions of size 1. */
  @Test
  void subMeshesInAnyOrderAreIndexArithmetic() {
    String[] names = {"a", "b", "c"};
    for (int[] shape : new int[][] {{2, 2, 2}, {1, 1, 1}, {2, 1, 4}}) {
      int world = shape[0] * shape[1] * shape[2];
      for (int rank = 0; rank < world; rank++) {
        int r = rank;
        FakeWorld.run(
            rank,
            world,
            unused -> {
              DeviceMesh mesh = initDeviceMesh("cpu", shape, names);
              int[] mine = mesh.getCoordinate();
              for (int i = 0; i < 3; i++) {
                for (int j = 0; j < 3; j++) {
                  if (i == j) {
                    continue;
                  }
                  List<Integer> expected = new ArrayList<>();
                  for (int x = 0; x < shape[i]; x++) {
                    for (int y = 0; y < shape[j]; y++) {
                      int[] at = mine.clone();
                      at[i] = x;
                      at[j] = y;
                      expected.add((at[0] * shape[1] + at[1]) * shape[2] + at[2]);
                    }
                  }
                  assertThat(mesh.get(names[i], names[j]).ranks())
                      .as("rank %s of %s", r, Arrays.toString(shape))
                      .containsExactly(expected.stream().mapToInt(Integer::intValue).toArray());
                }
              }
            });
      }
    }
  }

  /** P44: slicing again and again makes no group again. */
  @Test
  void groupsAreMadeOnceAndByTheirMembers() {
    LocalWorld.run(
        4,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 2));
          ProcessGroup first = mesh.getGroup("tp");
          for (int i = 0; i < 100; i++) {
            assertThat(mesh.get("tp").getGroup()).isSameAs(first);
            assertThat(mesh.get("dp", "tp").getGroup("tp")).isSameAs(first);
          }
          Tensor t = Tensor.of(new float[] {rank});
          first.allReduce(t, ReduceOp.SUM);
          assertThat(t.item()).isEqualTo(rank < 2 ? 1 : 5);
        });
  }

  @Test
  void badArgumentsAreNamed() {
    FakeWorld.run(
        0,
        4,
        rank -> {
          assertThatThrownBy(() -> initDeviceMesh("cpu", 8))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("8")
              .hasMessageContaining("4");
          assertThatThrownBy(() -> initDeviceMesh("cpu", 0))
              .isInstanceOf(IllegalArgumentException.class);
          assertThatThrownBy(() -> initDeviceMesh("cpu:0", 4))
              .hasMessageContaining("must not have an index");
          assertThatThrownBy(() -> initDeviceMesh("cpu", dim("a", 2), dim("a", 2)))
              .hasMessageContaining("unique");
          DeviceMesh mesh = initDeviceMesh("cpu", dim("a", 2), dim("b", 2));
          assertThatThrownBy(() -> mesh.get("c"))
              .isInstanceOf(NoSuchElementException.class)
              .hasMessageContaining("'c'")
              .hasMessageContaining("a, b");
          assertThatThrownBy(() -> mesh.getGroup()).hasMessageContaining("dim must be given");
          assertThatThrownBy(() -> mesh.getGroup(2)).isInstanceOf(IndexOutOfBoundsException.class);
          assertThatThrownBy(() -> DeviceMesh.of("cpu", new int[] {0, 1, 1, 2}, new int[] {4}))
              .hasMessageContaining("distinct");
        });
  }

  @Test
  void aRankOutsideTheMeshIsToldSo() {
    FakeWorld.run(
        2,
        4,
        rank -> {
          DeviceMesh mesh = DeviceMesh.of("cpu", new int[] {1, 3}, new int[] {2}, "a");
          assertThat(mesh.getCoordinate()).isNull();
          assertThat(mesh.containsThisRank()).isFalse();
          assertThatThrownBy(() -> mesh.getGroup("a"))
              .hasMessageContaining("rank 2")
              .hasMessageContaining("[1, 3]");
        });
  }

  @Test
  void groupsAreDescribedByTheDimension() {
    LocalWorld.run(
        4,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 2));
          assertThat(mesh.getGroup("dp").description()).isEqualTo("dp");
          assertThat(mesh.getGroup("tp").description()).isEqualTo("tp");
          assertThat(initDeviceMesh("cpu", 2, 2).getGroup(0).description()).isEmpty();
        });
  }
}
