package dev.weft.dtensor;

import static dev.weft.dtensor.Placements.partial;
import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.LocalWorld;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Random;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Random values depend on the seed and on places in the whole tensor, never on the mesh (P18). */
class RandomnessTest {
  /** Uneven over every mesh below; the first leaves ranks with nothing. */
  private static final List<long[]> SHAPES =
      List.of(new long[] {1, 3}, new long[] {5, 7}, new long[] {6, 4});

  record Case(int[] mesh, List<Placement> placements) {}

  static Stream<Case> cases() {
    List<Case> out = new ArrayList<>();
    List<Placement> ways = List.of(replicate(), shard(0), shard(1));
    for (Placement a : ways) {
      out.add(new Case(new int[] {1}, List.of(a)));
      out.add(new Case(new int[] {4}, List.of(a)));
      for (Placement b : ways) {
        out.add(new Case(new int[] {2, 2}, List.of(a, b)));
        out.add(new Case(new int[] {2, 1, 3}, List.of(a, replicate(), b)));
      }
    }
    out.add(new Case(new int[] {2, 1, 2}, List.of(shard(1), shard(1), shard(0))));
    out.add(new Case(new int[] {2, 2}, List.of(new StridedShard(0, 2), shard(0))));
    out.add(new Case(new int[] {2, 3}, List.of(new StridedShard(1, 3), shard(1))));
    return out.stream();
  }

  private static double[] dense(long[] shape, String what) {
    Generator g = new Generator(11);
    Tensor t = Creation.zeros(DType.FLOAT32, shape);
    return draw(t, what, g).toDoubleArray();
  }

  private static Tensor draw(Tensor t, String what, Generator g) {
    return switch (what) {
      case "uniform_" -> Random.uniform(t, -1, 2, g);
      case "normal_" -> Random.normal(t, 3, 2, g);
      case "random_" -> Random.integers(t, -5, 100, g);
      default -> Random.dropout(t.add(1), 0.4, true, g);
    };
  }

  @ParameterizedTest
  @MethodSource("cases")
  void theWholeTensorIsTheDenseOne(Case c) {
    int world = 1;
    for (int n : c.mesh) {
      world *= n;
    }
    LocalWorld.run(
        world,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", c.mesh);
          for (long[] shape : SHAPES) {
            for (String what : List.of("uniform_", "normal_", "random_", "dropout")) {
              DTensor t = DTensorFactories.zeros(mesh, c.placements, DType.FLOAT32, shape);
              Tensor got = draw(t, what, new Generator(11));
              assertThat(((DTensor) got).placements()).isEqualTo(c.placements);
              assertThat(got.toDoubleArray()).as(what).isEqualTo(dense(shape, what));
            }
          }
        });
  }

  /** The masks of dropout, twice and in backward, are those of one rank. */
  private static List<double[]> run(DeviceMesh mesh, List<Placement> placements) {
    DTensor.manualSeed(42);
    DTensor x = DTensorFactories.rand(mesh, placements, DType.FLOAT32, 5, 6);
    Tensor leaf = x.detach().requiresGrad(true);
    Tensor y = Random.dropout(Random.dropout(leaf, 0.3, true, null), 0.3, true, null);
    y.sum().backward();
    List<double[]> out = new ArrayList<>();
    Tensor g = leaf.grad();
    for (Tensor t :
        List.of(
            x,
            y,
            g == null ? x : g,
            DTensorFactories.randn(mesh, placements, DType.FLOAT64, 5, 6),
            DTensorFactories.randint(0, 50, mesh, placements, 7, 3))) {
      out.add(t.toDoubleArray());
    }
    return out;
  }

  @Test
  void aSeedReplaysARunOnAnotherMesh() {
    BiFunction<int[], List<Placement>, List<double[]>> on =
        (shape, placements) -> {
          int world = 1;
          for (int n : shape) {
            world *= n;
          }
          return LocalWorld.call(
                  world,
                  rank -> {
                    // What a rank draws for itself does not matter.
                    Tensor unused = Random.rand(Generator.current(), DType.FLOAT32, 3L + 2 * rank);
                    return run(DeviceMesh.initDeviceMesh("cpu", shape), placements);
                  })
              .get(world - 1);
        };
    List<double[]> alone = on.apply(new int[] {1}, List.of(replicate()));
    assertThat(on.apply(new int[] {3}, List.of(shard(0))))
        .usingRecursiveComparison()
        .isEqualTo(alone);
    assertThat(on.apply(new int[] {2, 2}, List.of(shard(1), shard(0))))
        .usingRecursiveComparison()
        .isEqualTo(alone);
    assertThat(alone.get(0)).isNotEqualTo(alone.get(3));
  }

  @Test
  void theStreamGoesOnWhereItIsSetTo() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2);
          DTensor.manualSeed(5);
          double[] first =
              DTensorFactories.rand(mesh, List.of(shard(0)), DType.FLOAT32, 3).toDoubleArray();
          long at = DTensor.generator().offset();
          double[] second =
              DTensorFactories.rand(mesh, List.of(shard(0)), DType.FLOAT32, 3).toDoubleArray();
          assertThat(second).isNotEqualTo(first);
          Generator unused = DTensor.generator().offset(at);
          assertThat(
                  DTensorFactories.rand(mesh, List.of(replicate()), DType.FLOAT32, 3)
                      .toDoubleArray())
              .isEqualTo(second);
        });
  }

  @Test
  void contributionsCannotBeRandom() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2);
          assertThatThrownBy(
                  () -> DTensorFactories.rand(mesh, List.of(partial()), DType.FLOAT32, 3))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("uniform_")
              .hasMessageContaining("P(sum)");
        });
  }
}
