package dev.weft.dtensor;

import static dev.weft.dtensor.Placements.partial;
import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.LocalWorld;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Compare;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Dispatcher;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Tensors made by mesh and placements, compared, printed and drawn. */
class FactoriesTest {
  private static final List<List<Placement>> ON_SQUARE =
      List.of(
          List.of(replicate(), replicate()),
          List.of(shard(0), replicate()),
          List.of(shard(0), shard(0)),
          List.of(new StridedShard(0, 2), shard(0)));

  private static void onSquare(Consumer<DeviceMesh> body) {
    LocalWorld.run(4, rank -> body.accept(DeviceMesh.initDeviceMesh("cpu", 2, 2)));
  }

  @Test
  void constantsAreMadeInPlace() {
    onSquare(
        mesh -> {
          for (List<Placement> p : ON_SQUARE) {
            assertThat(DTensorFactories.full(2.5, mesh, p, DType.FLOAT32, 5, 2).toDoubleArray())
                .hasSize(10)
                .containsOnly(2.5);
            assertThat(DTensorFactories.ones(mesh, p, DType.INT64, 3).toLongArray())
                .containsExactly(1, 1, 1);
            assertThat(DTensorFactories.zeros(mesh, p, DType.BOOL, 3).toLongArray())
                .containsExactly(0, 0, 0);
          }
        });
  }

  @Test
  void countedNumbersAreThoseOfOneRank() {
    onSquare(
        mesh -> {
          for (List<Placement> p : ON_SQUARE) {
            for (DType dtype : List.of(DType.FLOAT32, DType.FLOAT64, DType.INT64)) {
              Number step = dtype.isFloatingPoint() ? (Number) 0.3 : (Number) 3;
              assertThat(DTensorFactories.arange(1, 12, step, mesh, p, dtype).toDoubleArray())
                  .isEqualTo(Creation.arange(1, 12, step, dtype).toDoubleArray());
            }
            assertThat(DTensorFactories.arange(5, 5, 1, mesh, p, DType.FLOAT32).toDoubleArray())
                .isEmpty();
          }
          assertThatThrownBy(
                  () ->
                      DTensorFactories.arange(
                          0, 4, 1, mesh, List.of(partial(), replicate()), DType.FLOAT32))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("P(sum)");
        });
  }

  @Test
  void equalityComparesWholeTensorsWhateverTheirPlacements() {
    onSquare(
        mesh -> {
          DTensor a = DTensorFactories.arange(0, 7, 1, mesh, ON_SQUARE.get(1), DType.FLOAT32);
          for (List<Placement> p : ON_SQUARE) {
            DTensor b = DTensorFactories.arange(0, 7, 1, mesh, p, DType.FLOAT32);
            assertThat(Compare.equal(a, b)).isTrue();
            assertThat(Compare.allClose(a, b.add(1e-7), 1e-5, 1e-5)).isTrue();
            // One element differs, on some ranks only.
            DTensor c = (DTensor) b.add(DTensor.distributeTensor(one(7, 6), mesh, p, null));
            assertThat(Compare.equal(a, c)).isFalse();
            assertThat(Compare.allClose(a, c, 1e-5, 1e-5)).isFalse();
          }
        });
  }

  private static Tensor one(int n, int at) {
    float[] values = new float[n];
    values[at] = 1;
    return Tensor.of(values, n);
  }

  @Test
  void printingShowsTheOwnPartAndNeverCommunicates() {
    List<String> printed = java.util.Collections.synchronizedList(new ArrayList<>());
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2);
          DTensor x = DTensorFactories.arange(0, 3, 1, mesh, List.of(shard(0)), DType.FLOAT32);
          Tensor open = x.sum();
          try (Dispatcher.Installed installed =
              Dispatcher.install(
                  call -> {
                    throw new AssertionError(call.op() + " was called");
                  })) {
            // One rank alone: a collective would never end.
            if (rank == 1) {
              printed.add(x.toString());
              printed.add(open.toString());
            }
          }
        });
    assertThat(printed.get(0))
        .contains("float32[3]")
        .contains("S(0)")
        .contains("from [2] on this rank")
        .contains("tensor([2.])");
    assertThat(printed.get(1)).contains("P(sum)").contains("2.");
  }

  @Test
  void picturesShowWhichRanksHoldWhat() {
    LocalWorld.run(
        6,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2, 3);
          DTensor x =
              DTensorFactories.zeros(mesh, List.of(replicate(), shard(1)), DType.FLOAT32, 4, 8);
          assertThat(x.visualizeSharding())
              .isEqualTo(
                  """
                  float32[4, 8] [R, S(1)] on DeviceMesh(cpu, (2, 3))
                        0:3   3:6   6:8
                      ┌─────┬─────┬─────┐
                  0:4 │ 0,3 │ 1,4 │ 2,5 │
                      └─────┴─────┴─────┘""");
          DTensor y =
              DTensorFactories.zeros(mesh, List.of(shard(0), shard(1)), DType.FLOAT32, 4, 4, 2);
          assertThat(y.visualizeSharding())
              .contains("dimensions 0 (down) and 1")
              .contains("│ 0 │ 1 │")
              .contains("├───┼───┤")
              .endsWith("nothing on ranks 2,5");
          DTensor v = DTensorFactories.zeros(mesh, List.of(shard(0), shard(0)), DType.FLOAT32, 6);
          assertThat(v.visualizeSharding()).contains("│ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │");
          assertThat(ShardingPicture.svg(x.spec()))
              .startsWith("<svg")
              .contains(">0,3</text>")
              .endsWith("</svg>\n");
          DTensor scalar = (DTensor) x.sum();
          assertThat(scalar.visualizeSharding()).contains("0-5");
        });
  }
}
