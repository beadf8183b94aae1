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
import dev.weft.nn.Sequential;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Random;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Experts spread over ranks give what one rank gives that holds them all, gradients too. */
class MixtureOfExpertsTest {
  private static final int WIDTH = 6;

  private static MixtureOfExperts experts(int chosen) {
    return new MixtureOfExperts(WIDTH, 10, 4, chosen, new Generator(3));
  }

  private static Tensor tokens(long n) {
    return Random.randn(new Generator(9), DType.FLOAT32, n, WIDTH);
  }

  private static Map<String, double[]> gradients(Map<String, Tensor> leaves) {
    Map<String, double[]> out = new TreeMap<>();
    leaves.forEach(
        (name, t) -> {
          Tensor g = t.grad();
          assertThat(g).as(name).isNotNull();
          out.put(name, g == null ? new double[0] : g.toDoubleArray());
        });
    return out;
  }

  private static Map<String, Tensor> leaves(MixtureOfExperts m, Tensor x) {
    Map<String, Tensor> all = new TreeMap<>(m.namedParameters());
    all.put("x", x);
    return all;
  }

  private static void equalToDense(MixtureOfExperts dense, int ranks, long n, int chosen) {
    dense.zeroGrad();
    Tensor x = tokens(n).requiresGrad(true);
    Tensor y = dense.call(x);
    y.mul(y).sum().backward();
    Map<String, double[]> want = gradients(leaves(dense, x));
    LocalWorld.run(
        ranks,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", ranks);
          MixtureOfExperts m = experts(chosen);
          dense
              .namedParameters()
              .forEach(
                  (name, t) ->
                      dev.weft.tensor.autograd.Autograd.noGrad(
                          () -> {
                            Tensor unused = InPlace.copy(m.parameter(name), t.detach());
                          }));
          MixtureOfExperts spread =
              Parallelize.parallelizeModule(m, mesh, Map.of("", Styles.experts()));
          Placement cut = shard(0);
          Tensor mine =
              DTensor.distributeTensor(tokens(n), mesh, List.of(cut), null).requiresGrad(true);
          Tensor out = spread.call(mine);
          assertThat(((DTensor) out).placements()).containsExactly(cut);
          assertThat(out.toDoubleArray()).containsExactly(y.toDoubleArray(), Offset.offset(1e-5));
          out.mul(out).sum().backward();
          assertThat(((DTensor) spread.parameter("up")).placements()).containsExactly(cut);
          gradients(leaves(spread, mine))
              .forEach(
                  (name, g) ->
                      assertThat(g).as(name).containsExactly(want.get(name), Offset.offset(1e-4)));
        });
  }

  @ParameterizedTest
  @CsvSource({"1, 8, 2", "2, 8, 2", "4, 8, 1", "4, 6, 2", "2, 1, 2", "2, 5, 4"})
  void equalsOneRankThatHoldsAll(int ranks, long tokens, int chosen) {
    equalToDense(experts(chosen), ranks, tokens, chosen);
  }

  @Test
  void aRankWhoseExpertsAreNotChosenTakesPart() {
    MixtureOfExperts dense = experts(1);
    dev.weft.tensor.autograd.Autograd.noGrad(
        () -> {
          // The same logits for all experts: the first is chosen by every token.
          Tensor unused = InPlace.zero(dense.parameter("gate"));
        });
    equalToDense(dense, 4, 8, 1);
    equalToDense(dense, 2, 3, 1);
  }

  @Test
  void plainTokensAreEachRanksOwn() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2);
          MixtureOfExperts spread =
              Parallelize.parallelizeModule(experts(2), mesh, Map.of("", Styles.experts()));
          Tensor own = tokens(3 + rank);
          assertThat(spread.call(own).toDoubleArray())
              .containsExactly(experts(2).call(own).toDoubleArray(), Offset.offset(1e-6));
        });
  }

  @Test
  void whatDoesNotFitIsNamed() {
    assertThatThrownBy(() -> new MixtureOfExperts(4, 4, 2, 3, new Generator(0)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("3 of 2");
    LocalWorld.run(
        3,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 3);
          assertThatThrownBy(
                  () ->
                      Parallelize.parallelizeModule(experts(1), mesh, Map.of("", Styles.experts())))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("4 experts")
              .hasMessageContaining("3 ranks");
          assertThatThrownBy(
                  () ->
                      Parallelize.parallelizeModule(
                          new Sequential(new Linear(2, 2, true, new Generator(0))),
                          mesh,
                          Map.of("0", Styles.experts())))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("Linear");
          DTensor wide = DTensor.distributeTensor(tokens(3), mesh, List.of(shard(1)), null);
          assertThatThrownBy(() -> experts(1).call(wide))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("[S(1)]");
          DTensor whole = DTensor.distributeTensor(tokens(3), mesh, List.of(replicate()), null);
          assertThat(experts(1).call(whole).shape()).containsExactly(3, WIDTH);
        });
  }
}
