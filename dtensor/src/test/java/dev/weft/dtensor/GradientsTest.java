package dev.weft.dtensor;

import static dev.weft.dtensor.Placements.partial;
import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.weft.c10d.LocalWorld;
import dev.weft.mesh.DeviceMesh;
import dev.weft.optim.Clipping;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Reductions;
import java.util.List;
import org.junit.jupiter.api.Test;

class GradientsTest {
  private static DTensor leaf(DeviceMesh mesh, Placement placement, float... values) {
    DTensor t =
        DTensor.distributeTensor(Tensor.of(values, values.length), mesh, List.of(placement), null);
    return (DTensor) t.requiresGrad(true);
  }

  /** P20: the norm is over all parts, the same on all ranks, and clipping scales in place. */
  @Test
  void theNormIsGlobal() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("tp", 2));
          DTensor p = leaf(mesh, shard(0), 0, 0);
          Reductions.sum(Pointwise.mul(p, leaf(mesh, shard(0), 3, 4).detach())).backward();
          assertThat(Clipping.clipGradNorm(List.of(p), 1.0)).isCloseTo(5, within(1e-12));
          assertThat(p.grad().toFloatArray()[0]).isCloseTo(0.6f, within(1e-5f));
          assertThat(p.grad().toFloatArray()[1]).isCloseTo(0.8f, within(1e-5f));
        });
  }

  /** P19: parameters on different meshes, cut, whole and plain, in one norm. */
  @Test
  void theNormSpansMeshes() {
    LocalWorld.run(
        4,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 2));
          DTensor both =
              (DTensor)
                  DTensor.distributeTensor(
                          Tensor.of(new float[] {1, 2, 3, 4}, 4),
                          mesh,
                          List.of(shard(0), shard(0)),
                          null)
                      .requiresGrad(true);
          DTensor one = leaf(mesh.get("dp"), shard(0), 5, 6);
          DTensor whole = leaf(mesh.get("tp"), replicate(), 7);
          Tensor plain = Tensor.of(new float[] {8}, 1).requiresGrad(true);
          for (Tensor t : List.of(both, one, whole, plain)) {
            Tensor y = Reductions.sum(Pointwise.mul(t, t));
            y.backward();
          }
          double squares = 4 * (1 + 4 + 9 + 16 + 25 + 36 + 49 + 64);
          assertThat(Clipping.gradNorm(List.of(both, one, whole, plain)))
              .isCloseTo(Math.sqrt(squares), within(1e-9));
        });
  }

  /** P04: parts of unequal size are refused when checked, and right with a given shape. */
  @Test
  void unequalPartsAreToldOrDescribed() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("tp", 2));
          Tensor local =
              rank == 0 ? Tensor.of(new float[] {1, 2, 3}, 3) : Tensor.of(new float[] {4}, 1);
          assertThatThrownBy(
                  () ->
                      DTensor.fromLocal(
                          local, mesh, List.of(shard(0)), DTensor.FromLocal.DEFAULT.withCheck()))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("[3]")
              .hasMessageContaining("[1]");
          Tensor fitting =
              rank == 0 ? Tensor.of(new float[] {1, 2, 3}, 3) : Tensor.of(new float[] {4, 5}, 2);
          DTensor t =
              DTensor.fromLocal(
                  fitting,
                  mesh,
                  List.of(shard(0)),
                  DTensor.FromLocal.DEFAULT.withShape(new long[] {5}, new long[] {1}));
          assertThat(t.toFloatArray()).containsExactly(1, 2, 3, 4, 5);
        });
  }

  /** P11: out of and back into a Partial changes neither the value nor the gradient. */
  @Test
  void throughTheLocalPartOfAPartialIsTheIdentity() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("tp", 2));
          float[][] gradients = new float[2][];
          for (int way = 0; way < 2; way++) {
            Tensor local = Tensor.of(new float[] {1 + rank, 2}, 2).requiresGrad(true);
            DTensor t = DTensor.fromLocal(local, mesh, partial());
            if (way == 1) {
              t = DTensor.fromLocal(t.toLocal(), mesh, partial());
            }
            DTensor whole = t.redistribute(replicate());
            Reductions.sum(Pointwise.mul(whole, whole)).backward();
            gradients[way] = local.grad().toFloatArray();
          }
          assertThat(gradients[1]).containsExactly(gradients[0]);
          assertThat(gradients[0]).containsExactly(6, 8);
        });
  }

  /** P13: two mesh dimensions cut one tensor dimension; the order of cutting is the mesh's. */
  @Test
  void nestedCutsComeTogetherInOrder() {
    LocalWorld.run(
        4,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 2));
          Tensor counting = Tensor.of(new float[] {0, 1, 2, 3, 4, 5, 6, 7}, 8);
          for (DeviceMesh order : List.of(mesh, mesh.get("tp", "dp"))) {
            DTensor t = DTensor.distributeTensor(counting, order, shard(0), shard(0));
            assertThat(t.toFloatArray()).containsExactly(0, 1, 2, 3, 4, 5, 6, 7);
            assertThat(t.toLocal().numel()).isEqualTo(2);
          }
        });
  }
}
