package dev.weft.dtensor.tp;

import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.Placement;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Random;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Products split to overlap with their collectives give the same numbers. */
@ResourceLock("overlap")
class OverlapTest {
  private final long minBytes = Overlap.minBytes();

  @AfterEach
  void restore() {
    Overlap.mode(Overlap.Mode.AUTO);
    Overlap.minBytes(minBytes);
  }

  private static final class Mlp extends Module {
    private final Linear up = registerModule("up", new Linear(6, 8, true, new Generator(1)));
    private final Linear down = registerModule("down", new Linear(8, 6, true, new Generator(2)));

    @Override
    protected Tensor forward(Tensor... in) {
      return down.call(Activations.relu(up.call(in[0])));
    }
  }

  private static Tensor input(long length) {
    return Random.randn(new Generator(5), DType.FLOAT32, 2, length, 6);
  }

  private record Outcome(Map<String, double[]> numbers, List<String> collectives) {}

  /** A sequence-parallel block: the input and the output are cut along the sequence. */
  private static Outcome run(int ranks, long length) {
    return LocalWorld.call(
            ranks,
            rank -> {
              DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", ranks);
              Placement cut = shard(1);
              Mlp m =
                  Parallelize.parallelizeModule(
                      new Mlp(),
                      mesh,
                      Map.of(
                          "up",
                          Styles.colwise().input(cut),
                          "down",
                          Styles.rowwise().output(cut).localOutput(false)));
              List<String> collectives = new ArrayList<>();
              DTensor x =
                  (DTensor)
                      DTensor.distributeTensor(input(length), mesh, List.of(cut), null)
                          .requiresGrad(true);
              Map<String, double[]> numbers = new TreeMap<>();
              try (Dispatcher.Installed installed =
                  Dispatcher.install(
                      call -> {
                        if (call.op().name().startsWith("c10d.")) {
                          collectives.add(call.op().name());
                        }
                        return call.proceed();
                      })) {
                DTensor y = (DTensor) m.call(x);
                assertThat(y.placements()).containsExactly(cut);
                y.mul(y).sum().backward();
                numbers.put("y", y.toDoubleArray());
              }
              Map<String, Tensor> leaves = new TreeMap<>(m.namedParameters());
              leaves.put("x", x);
              leaves.forEach(
                  (name, t) -> {
                    Tensor g = t.grad();
                    numbers.put(name, g == null ? new double[0] : g.toDoubleArray());
                  });
              return new Outcome(numbers, collectives);
            })
        .get(0);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 4})
  void theNumbersAreThoseOfTheWholeCollectives(int ranks) {
    Overlap.mode(Overlap.Mode.OFF);
    Outcome off = run(ranks, 8);
    Overlap.mode(Overlap.Mode.ALWAYS);
    Outcome on = run(ranks, 8);
    off.numbers()
        .forEach(
            (name, want) ->
                assertThat(on.numbers().get(name))
                    .as(name)
                    .isNotEmpty()
                    .containsExactly(want, Offset.offset(1e-5)));
    if (ranks > 1) {
      assertThat(off.collectives()).anyMatch(c -> c.contains("reduce_scatter"));
      assertThat(on.collectives()).noneMatch(c -> c.contains("reduce_scatter"));
    }
  }

  @Test
  void sizeDecidesUnlessToldOtherwise() {
    List<String> whole = run(2, 8).collectives();
    Overlap.minBytes(2 * 8 * 6 * 4);
    List<String> split = run(2, 8).collectives();
    assertThat(split).isNotEqualTo(whole);
    Overlap.minBytes(2 * 8 * 6 * 4 + 1);
    assertThat(run(2, 8).collectives()).isEqualTo(whole);
    Overlap.mode(Overlap.Mode.OFF);
    Overlap.minBytes(0);
    assertThat(run(2, 8).collectives()).isEqualTo(whole);
    // An uneven sequence cannot be split in equal pieces.
    Overlap.mode(Overlap.Mode.ALWAYS);
    assertThat(run(2, 7).numbers().get("y")).hasSize(2 * 7 * 6);
  }

  @Test
  void theVariableIsReadStrictly() {
    assertThat(Overlap.fromEnvironment(null)).isEqualTo(Overlap.Mode.AUTO);
    assertThat(Overlap.fromEnvironment("off")).isEqualTo(Overlap.Mode.OFF);
    assertThatThrownBy(() -> Overlap.fromEnvironment("no"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("WEFT_OVERLAP")
        .hasMessageContaining("'no'");
  }

  @Test
  void whatDoesNotFitIsNamed() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2);
          DTensor uneven = DTensor.distributeTensor(input(7), mesh, List.of(shard(1)), null);
          DTensor w =
              DTensor.distributeTensor(
                  Random.randn(new Generator(1), DType.FLOAT32, 4, 6),
                  mesh,
                  List.of(replicate()),
                  null);
          assertThatThrownBy(() -> OverlappedLinear.allGatherLinear(uneven, w))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("even cut");
          DTensor even = DTensor.distributeTensor(input(8), mesh, List.of(shard(1)), null);
          assertThatThrownBy(() -> OverlappedLinear.allGatherLinear(even, w))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("weight")
              .hasMessageContaining("[S(0)]");
        });
  }
}
