package dev.weft.parallel;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.parallel.SmallModels.assertClose;
import static dev.weft.parallel.SmallModels.blocks;
import static dev.weft.parallel.SmallModels.gradients;
import static dev.weft.parallel.SmallModels.loss;
import static dev.weft.parallel.SmallModels.rows;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.Placements;
import dev.weft.dtensor.tp.Parallelize;
import dev.weft.dtensor.tp.Styles;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Module;
import dev.weft.nn.Recompute;
import dev.weft.nn.Sequential;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Random;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Activation recomputation together with what spreads a model over ranks. */
class RecomputeTest {
  private static final int WIDTH = 5;
  private static final int HIDDEN = 8;

  private static List<float[]> want(int rows) {
    Sequential m = blocks(3, WIDTH, HIDDEN);
    loss(m.call(rows(0, rows, WIDTH))).backward();
    return gradients(m);
  }

  private static FullySharded shard(Sequential m, DeviceMesh mesh, FullyShardedPolicy policy) {
    for (Module block : m.children().values()) {
      FullySharded unused = FullySharded.fullyShard(block, mesh, policy);
    }
    return FullySharded.fullyShard(m, mesh, policy);
  }

  /** Each block, or all in one piece, is gathered, run again, and let go. */
  @ParameterizedTest
  @CsvSource({"true,true", "true,false", "false,true", "false,false"})
  void shardedBlocksAreRunAgainWithTheirWholeParameters(boolean eachBlock, boolean reshard) {
    List<float[]> want = want(4);
    LocalWorld.run(
        2,
        rank -> {
          Sequential m = blocks(3, WIDTH, HIDDEN);
          FullySharded all =
              shard(
                  m,
                  initDeviceMesh("cpu", dim("dp", 2)),
                  FullyShardedPolicy.DEFAULT.withReshardAfterForward(reshard));
          if (eachBlock) {
            m.children().values().forEach(Recompute::of);
          }
          for (int step = 0; step < 3; step++) {
            m.zeroGrad();
            Tensor x = rows(2 * rank, 2 * rank + 2, WIDTH);
            Tensor y = eachBlock ? all.call(x) : Recompute.checkpoint(t -> all.call(t), x);
            loss(y).backward();
            assertThat(m.parameter("0.0.weight")).isInstanceOf(DTensor.class);
            assertClose(gradients(m), want);
          }
        });
  }

  @Test
  void mixedPrecisionOfShardsIsRepeated() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2));
          FullyShardedPolicy policy =
              FullyShardedPolicy.DEFAULT
                  .withMixedPrecision(DType.BFLOAT16, DType.FLOAT32)
                  .withOutputDtype(DType.FLOAT32);
          Sequential plain = blocks(3, WIDTH, HIDDEN);
          Sequential again = blocks(3, WIDTH, HIDDEN);
          FullySharded unused = shard(plain, mesh, policy);
          unused = shard(again, mesh, policy);
          again.children().values().forEach(Recompute::of);
          Tensor x = rows(2 * rank, 2 * rank + 2, WIDTH);
          loss(plain.call(x)).backward();
          loss(again.call(x)).backward();
          List<float[]> want = gradients(plain);
          List<float[]> got = gradients(again);
          for (int i = 0; i < want.size(); i++) {
            assertThat(got.get(i)).containsExactly(want.get(i));
          }
        });
  }

  /** Averaged once, in buckets that start while backward goes on. */
  @Test
  void replicasAverageAsBefore() {
    List<float[]> want = want(4);
    LocalWorld.run(
        2,
        rank -> {
          Sequential m = blocks(3, WIDTH, HIDDEN);
          m.children().values().forEach(Recompute::of);
          Ddp ddp =
              Ddp.of(
                  m,
                  initDeviceMesh("cpu", dim("dp", 2)),
                  DdpOptions.DEFAULT.withFirstBucketBytes(100).withBucketBytes(100));
          loss(ddp.call(rows(2 * rank, 2 * rank + 2, WIDTH))).backward();
          assertClose(gradients(m), want);
        });
  }

  /** Distributed tensors, their collectives and their random numbers are repeated. */
  @ParameterizedTest
  @CsvSource({"false", "true"})
  void tensorParallelBlocksAreRunAgain(boolean dropout) {
    LocalWorld.run(
        2,
        rank -> {
          DTensor.manualSeed(7);
          DeviceMesh mesh = initDeviceMesh("cpu", dim("tp", 2));
          List<List<float[]>> runs = new java.util.ArrayList<>();
          for (boolean again : new boolean[] {false, true}) {
            DTensor.manualSeed(7);
            Sequential m = blocks(3, WIDTH, HIDDEN);
            Sequential unused =
                Parallelize.parallelizeModule(
                    m, mesh, Map.of("*.0", Styles.colwise(), "*.2", Styles.rowwise()));
            Module first = m.module("1");
            Tensor x = rows(0, 4, WIDTH);
            Tensor y = m.module("0").call(x);
            java.util.function.UnaryOperator<Tensor> body =
                t -> {
                  Tensor h = first.call(t);
                  if (!dropout) {
                    return h;
                  }
                  DTensor d =
                      DTensor.fromLocal(h, mesh, Placements.replicate())
                          .redistribute(Placements.shard(0));
                  return ((DTensor) Random.dropout(d, 0.5, true, null)).fullTensor();
                };
            Tensor z = again ? Recompute.checkpoint(body, y) : body.apply(y);
            loss(m.module("2").call(z)).backward();
            runs.add(gradients(m));
          }
          for (int i = 0; i < runs.get(0).size(); i++) {
            assertThat(runs.get(1).get(i)).containsExactly(runs.get(0).get(i));
          }
        });
  }

  /** P16: a plain mask beside a distributed tensor is refused in forward, not in the second run. */
  @Test
  void aPlainMaskInAPieceIsRefusedInForward() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("tp", 2));
          DTensor x = DTensor.fromLocal(rows(0, 2, WIDTH), mesh, Placements.shard(0));
          Tensor unused = x.requiresGrad(true);
          Tensor mask = rows(0, 4, WIDTH);
          int[] runs = {0};
          assertThatThrownBy(
                  () ->
                      Recompute.checkpoint(
                          t -> {
                            runs[0]++;
                            return Pointwise.mul(Pointwise.mul(t, t), mask);
                          },
                          x))
              .isInstanceOf(RuntimeException.class)
              .hasMessageContaining("mul")
              .hasMessageContaining("[4, 5]");
          assertThat(runs[0]).isEqualTo(1);
          Tensor scale = Tensor.of(new float[] {3}, 1).reshape();
          Tensor y = Recompute.checkpoint(t -> Pointwise.mul(Pointwise.mul(t, t), scale), x);
          loss(y).backward();
          assertThat(x.grad()).isInstanceOf(DTensor.class);
        });
  }
}
