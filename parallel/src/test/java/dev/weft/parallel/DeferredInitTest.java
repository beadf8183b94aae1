package dev.weft.parallel;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.parallel.SmallModels.assertClose;
import static dev.weft.parallel.SmallModels.gradients;
import static dev.weft.parallel.SmallModels.loss;
import static dev.weft.parallel.SmallModels.parameters;
import static dev.weft.parallel.SmallModels.rows;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.tp.Parallelize;
import dev.weft.dtensor.tp.Styles;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.DeferredInit;
import dev.weft.nn.Embedding;
import dev.weft.nn.Function;
import dev.weft.nn.LayerNorm;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.nn.RmsNorm;
import dev.weft.nn.Sequential;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.memory.MemoryAccount;
import dev.weft.tensor.op.Activations;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Models that are made without memory. */
class DeferredInitTest {
  private static final int WIDTH = 6;

  private static Sequential block(Generator g, int width) {
    return new Sequential(
        new Linear(width, 2L * width, true, g),
        new Function(Activations::tanh),
        new Linear(2L * width, width, true, g));
  }

  private static Sequential model(Generator g, int width) {
    return new Sequential(
        block(g, width), new LayerNorm(width, 1e-5), block(g, width), new RmsNorm(width, 1e-5));
  }

  private static Sequential deferred(int seed, int width) {
    try (DeferredInit open = DeferredInit.open()) {
      return model(new Generator(seed), width);
    }
  }

  /** On one and two mesh dimensions, each rank has its part of what one rank would have made. */
  @ParameterizedTest
  @CsvSource({"1,2", "1,3", "2,2"})
  void shardsHaveTheValuesOfTheWholeModel(int replicas, int shards) {
    Sequential whole = model(new Generator(3), WIDTH);
    loss(whole.call(rows(0, replicas * shards, WIDTH))).backward();
    List<float[]> values = parameters(whole);
    List<float[]> gradients = gradients(whole);
    LocalWorld.run(
        replicas * shards,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("replicate", replicas), dim("shard", shards));
          DeviceMesh over = replicas == 1 ? mesh.get("shard") : mesh;
          // The first rank's numbers count, whatever a rank's own seed is.
          Sequential m = deferred(3 + rank, WIDTH);
          assertThat(m.parameters()).allMatch(p -> p.device().isMeta());
          for (Module part : m.children().values()) {
            FullySharded unused = FullySharded.fullyShard(part, over);
          }
          FullySharded unused = FullySharded.fullyShard(m, over);
          List<float[]> got = parameters(m);
          for (int i = 0; i < values.size(); i++) {
            assertThat(got.get(i)).containsExactly(values.get(i));
          }
          loss(m.call(rows(rank, rank + 1, WIDTH))).backward();
          assertClose(gradients(m), gradients);
        });
  }

  @ParameterizedTest
  @CsvSource({"true", "false"})
  void tensorParallelPartsToo(boolean sharded) {
    List<float[]> values = parameters(model(new Generator(3), WIDTH));
    LocalWorld.run(
        4,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 2));
          Sequential m = deferred(3, WIDTH);
          Sequential unused =
              Parallelize.parallelizeModule(
                  m,
                  mesh.get("tp"),
                  Map.of("[02].0", Styles.colwise(), "[02].2", Styles.rowwise()));
          if (sharded) {
            FullySharded done = FullySharded.fullyShard(m, mesh.get("dp"));
          } else {
            DeferredParameters.materialize(m, Device.CPU);
          }
          assertThat(((DTensor) m.parameter("0.0.weight")).toLocal().size(0))
              .isEqualTo(sharded ? WIDTH / 2 : WIDTH);
          List<float[]> got = parameters(m);
          for (int i = 0; i < values.size(); i++) {
            assertThat(got.get(i)).containsExactly(values.get(i));
          }
        });
  }

  /** P22: a tie survives making it on meta, sharding it, and filling it. */
  @Test
  void tiesSurvive() {
    Embedding table = new Embedding(7, WIDTH, new Generator(1));
    float[] values = table.parameter("weight").toFloatArray();
    LocalWorld.run(
        2,
        rank -> {
          for (boolean sharded : new boolean[] {true, false}) {
            Sequential m;
            try (DeferredInit open = DeferredInit.open()) {
              Embedding e = new Embedding(7, WIDTH, new Generator(1));
              m = new Sequential(e, new Linear(e.parameter("weight"), null));
            }
            if (sharded) {
              FullySharded unused = FullySharded.fullyShard(m, initDeviceMesh("cpu", dim("dp", 2)));
            } else {
              DeferredParameters.materialize(m, Device.CPU);
            }
            assertThat(m.parameter("0.weight")).isSameAs(m.parameter("1.weight"));
            assertThat(SmallModels.values(m.parameter("0.weight"))).containsExactly(values);
            Tensor y = m.call(Tensor.of(new long[] {rank, 3}, 2));
            loss(y).backward();
            assertThat(m.parameters()).hasSize(1);
            assertThat(m.parameters().get(0).grad()).isNotNull();
          }
        });
  }

  /** At no time is there more than the parts. */
  @Test
  void wholeParametersNeverExist() {
    int width = 128;
    int ranks = 4;
    long whole = 4L * (2 * (4L * width * width + 3L * width) + 3L * width);
    LocalWorld.run(
        ranks,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", ranks));
          try (MemoryAccount account = MemoryAccount.open()) {
            Sequential m = deferred(3, width);
            assertThat(account.peakBytes()).isZero();
            FullySharded unused = FullySharded.fullyShard(m, mesh);
            assertThat(m.parameters()).allMatch(p -> p instanceof DTensor);
            // This rank's rows, and messages of a few numbers.
            assertThat(account.peakBytes())
                .isBetween(whole / ranks, whole / ranks + whole / ranks / 50);
          }
        });
  }

  @Test
  void whatHasNoRecipeIsRefused() {
    LocalWorld.run(
        1,
        rank -> {
          Module bare =
              new Linear(Tensors.empty(DType.FLOAT32, Device.META, 2, 2).requiresGrad(true), null);
          assertThatThrownBy(
                  () -> FullySharded.fullyShard(bare, initDeviceMesh("cpu", dim("dp", 1))))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("'weight' is on device meta")
              .hasMessageContaining("DeferredInit");
          assertThatThrownBy(() -> DeferredParameters.materialize(bare, Device.CPU))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("'weight' is on device meta");
        });
  }
}
