package dev.weft.parallel;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.parallel.SmallModels.assertClose;
import static dev.weft.parallel.SmallModels.blocks;
import static dev.weft.parallel.SmallModels.gradients;
import static dev.weft.parallel.SmallModels.loss;
import static dev.weft.parallel.SmallModels.parameters;
import static dev.weft.parallel.SmallModels.rows;
import static dev.weft.parallel.SmallModels.weights;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.offset;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.checkpoint.Checkpoint;
import dev.weft.dtensor.tp.Parallelize;
import dev.weft.dtensor.tp.Styles;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.nn.Sequential;
import dev.weft.optim.AdamW;
import dev.weft.optim.Clipping;
import dev.weft.optim.Optimizer;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.op.Pointwise;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class FullyShardedTest {
  private static final int BLOCKS = 3;
  private static final int WIDTH = 5;
  private static final int HIDDEN = 7;
  private static final int ROWS = 8;

  /** Losses, gradient norms and the last parameters of a run. */
  private record Run(List<Double> norms, List<float[]> parameters) {}

  private static Run train(Sequential m, int steps, int first, int last) {
    List<Double> norms = new ArrayList<>();
    try (Optimizer optimizer = AdamW.over(m.parameters()).learningRate(0.01).build()) {
      for (int step = 0; step < steps; step++) {
        try (TensorScope scope = TensorScope.open()) {
          loss(m.call(rows(first + step, last + step, WIDTH))).backward();
          norms.add(Clipping.clipGradNorm(m.parameters(), 0.05));
          optimizer.step();
          optimizer.zeroGrad();
        }
      }
    }
    return new Run(norms, parameters(m));
  }

  private static void assertSame(Run got, Run want) {
    for (int i = 0; i < want.norms.size(); i++) {
      assertThat(got.norms.get(i)).isCloseTo(want.norms.get(i), offset(1e-6));
    }
    assertClose(got.parameters, want.parameters);
  }

  private static Sequential sharded(DeviceMesh mesh, FullyShardedPolicy policy) {
    Sequential m = blocks(BLOCKS, WIDTH, HIDDEN);
    shard(m, mesh, policy);
    return m;
  }

  private static FullySharded shard(Sequential m, DeviceMesh mesh, FullyShardedPolicy policy) {
    for (Module block : m.children().values()) {
      FullySharded unused = FullySharded.fullyShard(block, mesh, policy);
    }
    return FullySharded.fullyShard(m, mesh, policy);
  }

  @ParameterizedTest
  @CsvSource({
    "1,true,true",
    "2,true,true",
    "4,true,true",
    "2,false,true",
    "2,true,false",
    "4,false,false"
  })
  void trainingIsThatOfOneRank(int ranks, boolean reshard, boolean prefetch) {
    Run want = train(blocks(BLOCKS, WIDTH, HIDDEN), 4, 0, ROWS);
    LocalWorld.run(
        ranks,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", ranks));
          Sequential m =
              sharded(
                  mesh,
                  FullyShardedPolicy.DEFAULT
                      .withReshardAfterForward(reshard)
                      .withPrefetch(prefetch));
          int rows = ROWS / ranks;
          assertSame(train(m, 4, rank * rows, (rank + 1) * rows), want);
        });
  }

  @Test
  void eachRankKeepsItsRowsOnly() {
    LocalWorld.run(
        2,
        rank -> {
          Sequential m = sharded(initDeviceMesh("cpu", dim("dp", 2)), FullyShardedPolicy.DEFAULT);
          DTensor w = (DTensor) m.parameter("0.0.weight");
          assertThat(w.shape()).containsExactly(HIDDEN, WIDTH);
          assertThat(w.toLocal().shape()).containsExactly(rank == 0 ? 4 : 3, WIDTH);
          assertThat(w.placements()).hasToString("[S(0)]");
          assertThat(w.fullTensor().toFloatArray())
              .containsExactly(weights(0, HIDDEN, WIDTH).toFloatArray());
        });
  }

  /** Only the block that computes, and the one gathered ahead, are whole at a time. */
  @Test
  void wholeParametersAreThereOnlyWhileTheirModuleComputes() {
    LocalWorld.run(
        2,
        rank -> {
          Sequential m = blocks(BLOCKS, WIDTH, HIDDEN);
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2));
          List<FullySharded> parts = new ArrayList<>();
          for (Module block : m.children().values()) {
            parts.add(FullySharded.fullyShard(block, mesh));
          }
          FullySharded unused = FullySharded.fullyShard(m, mesh);
          List<List<Boolean>> forward = new ArrayList<>();
          List<List<Boolean>> backward = new ArrayList<>();
          for (Module block : m.children().values()) {
            Module.Handle handle =
                block
                    .module("1")
                    .forwardHook(
                        (f, in, out) -> {
                          forward.add(parts.stream().map(FullySharded::isWhole).toList());
                          Autograd.hook(
                              out,
                              g -> {
                                backward.add(parts.stream().map(FullySharded::isWhole).toList());
                                return g;
                              });
                          return out;
                        });
          }
          for (int step = 0; step < 2; step++) {
            forward.clear();
            backward.clear();
            loss(m.call(rows(rank, rank + 1, WIDTH))).backward();
            assertThat(forward)
                .containsExactly(
                    List.of(true, false, false),
                    List.of(false, true, false),
                    List.of(false, false, true));
            assertThat(backward)
                .containsExactly(
                    List.of(false, false, true),
                    List.of(false, true, false),
                    List.of(true, false, false));
            assertThat(parts).noneMatch(FullySharded::isWhole);
          }
        });
  }

  /** Two modules ahead, and as many as there are; parts in the host's memory. */
  @ParameterizedTest
  @CsvSource({"2,false", "9,false", "1,true"})
  void otherPoliciesTrainAlike(int prefetch, boolean offload) {
    Run want = train(blocks(BLOCKS, WIDTH, HIDDEN), 3, 0, ROWS);
    LocalWorld.run(
        2,
        rank -> {
          Sequential m =
              sharded(
                  initDeviceMesh("cpu", dim("dp", 2)),
                  FullyShardedPolicy.DEFAULT.withPrefetch(prefetch).withCpuOffload(offload));
          assertSame(train(m, 3, rank * ROWS / 2, (rank + 1) * ROWS / 2), want);
        });
  }

  /** Once the order is known, in forward and in backward. */
  @ParameterizedTest
  @CsvSource({"0", "1", "2"})
  void soManyModulesAreGatheredAhead(int prefetch) {
    LocalWorld.run(
        2,
        rank -> {
          Sequential m = blocks(4, WIDTH, HIDDEN);
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2));
          FullyShardedPolicy policy = FullyShardedPolicy.DEFAULT.withPrefetch(prefetch);
          List<FullySharded> parts = new ArrayList<>();
          for (Module block : m.children().values()) {
            parts.add(FullySharded.fullyShard(block, mesh, policy));
          }
          FullySharded unused = FullySharded.fullyShard(m, mesh, policy);
          List<Long> ahead = new ArrayList<>();
          for (String inside : List.of("1.1", "2.1")) {
            Module.Handle handle =
                m.module(inside)
                    .forwardHook(
                        (f, in, out) -> {
                          ahead.add(parts.stream().filter(FullySharded::isGatheredAhead).count());
                          Autograd.hook(
                              out,
                              g -> {
                                ahead.add(
                                    parts.stream().filter(FullySharded::isGatheredAhead).count());
                                return g;
                              });
                          return out;
                        });
          }
          for (int step = 0; step < 2; step++) {
            ahead.clear();
            loss(m.call(rows(rank, rank + 1, WIDTH))).backward();
          }
          // Of four blocks the second has two after it, the third one; in backward the other way.
          long one = Math.min(prefetch, 1);
          assertThat(ahead).containsExactly((long) prefetch, one, (long) prefetch, one);
        });
  }

  @Test
  void aWholeParameterOutsideItsModuleIsAClearError() {
    LocalWorld.run(
        1,
        rank -> {
          List<Tensor> seen = new ArrayList<>();
          Sequential m = blocks(1, WIDTH, HIDDEN);
          FullySharded unused = FullySharded.fullyShard(m, initDeviceMesh("cpu", dim("dp", 1)));
          Module.Handle handle =
              m.module("0.0")
                  .forwardPreHook(
                      (l, in) -> {
                        seen.add(l.parameter("weight"));
                        return in;
                      });
          Tensor y = m.call(rows(0, 1, WIDTH));
          assertThatThrownBy(() -> seen.get(0).toFloatArray())
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("0.0.weight")
              .hasMessageContaining("sharded at this moment");
          assertThat(y.requiresGrad()).isTrue();
        });
  }

  @Test
  void microbatchesAreAccumulatedBeforeTheyAreReduced() {
    List<float[]> want = wholeBatch(12);
    LocalWorld.run(
        2,
        rank -> {
          Sequential m = blocks(BLOCKS, WIDTH, HIDDEN);
          FullySharded all =
              shard(m, initDeviceMesh("cpu", dim("dp", 2)), FullyShardedPolicy.DEFAULT);
          for (int micro = 0; micro < 3; micro++) {
            all.requiresGradientSync(micro == 2);
            int first = 4 * micro + 2 * rank;
            Pointwise.div(loss(all.call(rows(first, first + 2, WIDTH))), 3).backward();
          }
          assertClose(gradients(m), want);
        });
  }

  private static List<float[]> wholeBatch(int rows) {
    Sequential m = blocks(BLOCKS, WIDTH, HIDDEN);
    loss(m.call(rows(0, rows, WIDTH))).backward();
    return gradients(m);
  }

  /** P21: with the all-reduce put off, no microbatch is lost on any replica. */
  @ParameterizedTest
  @CsvSource({"true", "false"})
  void replicasAccumulateBeforeTheirAllReduce(boolean scatterEach) {
    List<float[]> want = wholeBatch(12);
    LocalWorld.run(
        4,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("replicate", 2), dim("shard", 2));
          Sequential m = blocks(BLOCKS, WIDTH, HIDDEN);
          FullySharded all = shard(m, mesh, FullyShardedPolicy.DEFAULT);
          for (int micro = 0; micro < 3; micro++) {
            if (scatterEach) {
              all.requiresAllReduce(micro == 2);
            } else {
              all.requiresGradientSync(micro == 2);
            }
            int first = 4 * micro + rank;
            Pointwise.div(loss(all.call(rows(first, first + 1, WIDTH))), 3).backward();
          }
          assertThat(((DTensor) m.parameters().get(0)).placements()).hasToString("[R, S(0)]");
          assertClose(gradients(m), want);
        });
  }

  /** P13, P19: tensor parallelism cuts first, and norms are over both dimensions. */
  @ParameterizedTest
  @CsvSource({"2,2", "1,2", "2,1"})
  void tensorParallelismGoesUnderneath(int dp, int tp) {
    int hidden = 8;
    Run want = train(blocks(2, WIDTH, hidden), 4, 0, ROWS);
    LocalWorld.run(
        dp * tp,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", dp), dim("tp", tp));
          Sequential m = blocks(2, WIDTH, hidden);
          Sequential unused =
              Parallelize.parallelizeModule(
                  m, mesh.get("tp"), Map.of("*.0", Styles.colwise(), "*.2", Styles.rowwise()));
          shard(m, mesh.get("dp"), FullyShardedPolicy.DEFAULT);
          DTensor w = (DTensor) m.parameter("0.0.weight");
          assertThat(w.placements()).hasToString(tp == 1 ? "[S(0), S(0)]" : "[SS(0,2), S(0)]");
          assertThat(w.fullTensor().toFloatArray())
              .containsExactly(weights(0, hidden, WIDTH).toFloatArray());
          int rows = ROWS / dp;
          int at = mesh.coordinate(0) * rows;
          assertSame(train(m, 4, at, at + rows), want);
        });
  }

  /** P19: replicas by shards by tensor parallelism, norms over all three. */
  @Test
  void threeDimensionsTrainAsOneRank() {
    int hidden = 8;
    Run want = train(blocks(2, WIDTH, hidden), 3, 0, ROWS);
    LocalWorld.run(
        8,
        rank -> {
          DeviceMesh mesh =
              initDeviceMesh("cpu", dim("replicate", 2), dim("shard", 2), dim("tp", 2));
          Sequential m = blocks(2, WIDTH, hidden);
          Sequential unused =
              Parallelize.parallelizeModule(
                  m, mesh.get("tp"), Map.of("*.0", Styles.colwise(), "*.2", Styles.rowwise()));
          FullySharded all = shard(m, mesh.get("replicate", "shard"), FullyShardedPolicy.DEFAULT);
          assertThat(all.parameters()).isEmpty();
          assertThat(((DTensor) m.parameter("0.0.weight")).placements())
              .hasToString("[R, SS(0,2), S(0)]");
          int rows = ROWS / 4;
          int at = (2 * mesh.coordinate(0) + mesh.coordinate(1)) * rows;
          assertSame(train(m, 3, at, at + rows), want);
        });
  }

  @Test
  void mixedPrecisionComputesLowAndKeepsParametersHigh() {
    List<float[]> want = wholeBatch(ROWS);
    LocalWorld.run(
        2,
        rank -> {
          Sequential m = blocks(BLOCKS, WIDTH, HIDDEN);
          FullySharded all =
              shard(
                  m,
                  initDeviceMesh("cpu", dim("dp", 2)),
                  FullyShardedPolicy.DEFAULT
                      .withMixedPrecision(DType.BFLOAT16, DType.FLOAT32)
                      .withOutputDtype(DType.FLOAT32));
          List<DType> inside = new ArrayList<>();
          Module.Handle unused =
              m.module("1.0")
                  .forwardHook(
                      (l, in, out) -> {
                        inside.add(in[0].dtype());
                        inside.add(l.parameter("weight").dtype());
                        inside.add(out.dtype());
                        return out;
                      });
          Tensor y = all.call(rows(4 * rank, 4 * rank + 4, WIDTH));
          assertThat(y.dtype()).isEqualTo(DType.FLOAT32);
          assertThat(inside).containsOnly(DType.BFLOAT16);
          loss(y).backward();
          List<float[]> got = gradients(m);
          for (int i = 0; i < want.size(); i++) {
            assertThat(m.parameters().get(i).grad().dtype()).isEqualTo(DType.FLOAT32);
            assertThat(got.get(i)).containsExactly(want.get(i), offset(4e-3f));
          }
        });
  }

  /** P22: a tie inside one call survives; a tie over two calls is refused by name. */
  @Test
  void tiedParametersStayTiedOrAreRefused() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2));
          Sequential m = tied();
          Sequential alone = tied();
          FullySharded all = FullySharded.fullyShard(m, mesh);
          assertThat(m.parameter("0.weight")).isSameAs(m.parameter("2.weight"));
          loss(all.call(rows(rank, rank + 1, 4))).backward();
          loss(alone.call(rows(0, 2, 4))).backward();
          assertClose(gradients(m), gradients(alone));
          Sequential other = tied();
          FullySharded unused = FullySharded.fullyShard(other.module("0"), mesh);
          assertThatThrownBy(() -> FullySharded.fullyShard(other, mesh))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("2.weight")
              .hasMessageContaining("tied");
        });
  }

  private static Sequential tied() {
    Tensor shared = weights(3, 4, 4).requiresGrad(true);
    return new Sequential(
        new Linear(shared, null), new Linear(weights(4, 4, 4), null), new Linear(shared, null));
  }

  @Test
  void aModuleThatTakesNoPartInALossLeavesTheOthersRight() {
    LocalWorld.run(
        2,
        rank -> {
          Sequential m = blocks(2, WIDTH, HIDDEN);
          FullySharded all =
              shard(m, initDeviceMesh("cpu", dim("dp", 2)), FullyShardedPolicy.DEFAULT);
          Tensor y = all.call(rows(rank, rank + 1, WIDTH));
          Tensor only = m.module("0").call(rows(rank, rank + 1, WIDTH));
          loss(only).backward();
          assertThat(m.parameter("0.0.weight").grad()).isNotNull();
          assertThat(m.parameter("1.0.weight").grad()).isNull();
          loss(y).backward();
          assertThat(m.parameter("1.0.weight").grad()).isNotNull();
        });
  }

  /** A run that is saved sharded over two ranks goes on over four, and on one without sharding. */
  @Test
  void checkpointsCarryOverToOtherMeshes(@TempDir Path folder) {
    List<List<float[]>> saved =
        LocalWorld.call(
            2,
            rank -> {
              Sequential m =
                  sharded(initDeviceMesh("cpu", dim("dp", 2)), FullyShardedPolicy.DEFAULT);
              Run unused = train(m, 2, 4 * rank, 4 * rank + 4);
              Checkpoint done = Checkpoint.save(folder, 2, m, null, Map.of());
              return parameters(m);
            });
    LocalWorld.run(
        4,
        rank -> {
          Sequential m = sharded(initDeviceMesh("cpu", dim("dp", 4)), FullyShardedPolicy.DEFAULT);
          Map<String, Double> scalars = Checkpoint.latest(folder).orElseThrow().load(m, null);
          assertClose(parameters(m), saved.get(0));
        });
  }

  /** P61. */
  @Test
  void whatARankHoldsBetweenStepsDoesNotGrow() {
    int width = 64;
    LocalWorld.run(
        1,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 1));
          Sequential m = blocks(4, width, 4 * width);
          FullySharded all = shard(m, mesh, FullyShardedPolicy.DEFAULT);
          long before = 0;
          for (int step = 0; step < 6; step++) {
            try (TensorScope scope = TensorScope.open()) {
              loss(all.call(rows(0, 2, width))).backward();
            }
            m.zeroGrad();
            if (step == 1) {
              before = HostMemory.liveBytes();
            }
          }
          assertThat(HostMemory.liveBytes()).isLessThanOrEqualTo(before);
        });
  }

  @Test
  void badCallsAreRefused() {
    LocalWorld.run(
        1,
        rank -> {
          Sequential m = blocks(1, WIDTH, HIDDEN);
          DeviceMesh mesh = initDeviceMesh("cpu", dim("a", 1), dim("b", 1), dim("c", 1));
          assertThatThrownBy(() -> FullySharded.fullyShard(m, mesh))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("3 dimensions");
          Module scalar =
              new Module() {
                {
                  Tensor unused = registerParameter("w", weights(1, 2, 2));
                  unused = registerParameter("scale", weights(2, 1).reshape());
                }

                @Override
                protected Tensor forward(Tensor... inputs) {
                  return inputs[0];
                }
              };
          assertThatThrownBy(() -> FullySharded.fullyShard(scalar, mesh.get("a")))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("'scale' has no dimension");
          assertThat(scalar.parameter("w")).isNotInstanceOf(DTensor.class);
          FullySharded unused = FullySharded.fullyShard(m, mesh.get("a"));
          assertThatThrownBy(() -> FullySharded.fullyShard(m, mesh.get("a")))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("sharded already");
        });
  }
}
