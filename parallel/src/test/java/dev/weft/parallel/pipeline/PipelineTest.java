package dev.weft.parallel.pipeline;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.parallel.SmallModels.blocks;
import static dev.weft.parallel.SmallModels.rows;
import static dev.weft.parallel.SmallModels.values;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.offset;

import dev.weft.c10d.LocalWorld;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.nn.Sequential;
import dev.weft.parallel.Ddp;
import dev.weft.parallel.FullySharded;
import dev.weft.parallel.SmallModels;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.op.Losses;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PipelineTest {
  private static final int WIDTH = 5;
  private static final int ROWS = 12;

  private static LocalWorld world(int ranks) {
    return LocalWorld.of(ranks).timeout(Duration.ofMinutes(2));
  }

  private static Tensor target(int from, int to) {
    return rows(100 + from, 100 + to, WIDTH);
  }

  private static Tensor mse(Tensor output, Tensor target) {
    return Losses.mseLoss(output, target, "mean");
  }

  /** The stages of a rank: a block each. */
  private static List<Module> stages(int rank, int ranks, int perRank) {
    Sequential model = blocks(ranks * perRank, WIDTH, 7);
    List<String> starts = new ArrayList<>();
    for (int s = 1; s < ranks * perRank; s++) {
      starts.add(String.valueOf(s));
    }
    List<String> order = new ArrayList<>(starts);
    order.add(0, "0");
    List<Module> all = Stages.split(model, order, starts);
    List<Module> mine = new ArrayList<>();
    for (int s = rank; s < all.size(); s += ranks) {
      mine.add(all.get(s));
    }
    return mine;
  }

  /** What one rank gets for the whole batch. */
  private record Whole(double loss, Map<String, float[]> gradients) {
    static Whole of(int blocks) {
      Sequential m = blocks(blocks, WIDTH, 7);
      Tensor loss = mse(m.call(rows(0, ROWS, WIDTH)), target(0, ROWS));
      loss.backward();
      return new Whole(loss.item(), gradientsOf(List.of(m)));
    }

    void check(List<Module> mine) {
      gradientsOf(mine)
          .forEach((name, g) -> assertThat(g).containsExactly(gradients.get(name), offset(1e-6f)));
    }
  }

  private static Map<String, float[]> gradientsOf(List<Module> modules) {
    Map<String, float[]> out = new TreeMap<>();
    for (Module m : modules) {
      m.namedParameters().forEach((name, p) -> out.put(name, values(p.grad())));
    }
    return out;
  }

  /** P25, P26: fewer microbatches than stages, or one, and chains of any length. */
  @ParameterizedTest
  @CsvSource({
    "GPIPE,1,1,3",
    "GPIPE,2,1,4",
    "GPIPE,4,1,1",
    "GPIPE,4,1,2",
    "GPIPE,3,2,3",
    "GPIPE,1,3,2",
    "ONE_F_ONE_B,1,1,3",
    "ONE_F_ONE_B,2,1,4",
    "ONE_F_ONE_B,4,1,1",
    "ONE_F_ONE_B,4,1,2",
    "ONE_F_ONE_B,4,1,3",
    "ONE_F_ONE_B,4,1,6",
    "INTERLEAVED,2,2,4",
    "INTERLEAVED,3,2,3",
    "INTERLEAVED,2,3,2",
    "INTERLEAVED,1,2,3",
    "ZB_H1,1,1,3",
    "ZB_H1,2,1,4",
    "ZB_H1,4,1,1",
    "ZB_H1,4,1,3",
    "ZB_H1,4,1,12"
  })
  void everyScheduleGivesTheGradientsOfTheWholeBatch(
      Schedule schedule, int ranks, int perRank, int microbatches) {
    Whole want = Whole.of(ranks * perRank);
    world(ranks)
        .run(
            rank -> {
              List<Module> mine = stages(rank, ranks, perRank);
              Pipeline pipeline =
                  Pipeline.of(
                      initDeviceMesh("cpu", dim("pp", ranks)),
                      mine,
                      schedule,
                      microbatches,
                      PipelineTest::mse);
              for (int step = 0; step < 2; step++) {
                mine.forEach(Module::zeroGrad);
                Tensor loss =
                    pipeline.step(
                        pipeline.isFirst() ? rows(0, ROWS, WIDTH) : null,
                        pipeline.isLast() ? target(0, ROWS) : null);
                want.check(mine);
                if (pipeline.isLast()) {
                  assertThat(loss.item()).isCloseTo(want.loss, offset(1e-6));
                } else {
                  assertThat(loss).isNull();
                }
              }
            });
  }

  /** Gradients are averaged over replicas once a step, whole or sharded. */
  @ParameterizedTest
  @CsvSource({
    "GPIPE,false",
    "ONE_F_ONE_B,false",
    "ZB_H1,false",
    "GPIPE,true",
    "ONE_F_ONE_B,true",
    "ZB_H1,true"
  })
  void dataParallelStagesAreAveragedOnce(Schedule schedule, boolean sharded) {
    Whole want = Whole.of(2);
    world(4)
        .run(
            rank -> {
              DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2), dim("pp", 2));
              List<Module> mine = stages(mesh.coordinate(1), 2, 1);
              Pipeline pipeline = Pipeline.of(mesh.get("pp"), mine, schedule, 3, PipelineTest::mse);
              pipeline.withSync(
                  0,
                  sharded
                      ? FullySharded.fullyShard(mine.get(0), mesh.get("dp"))
                      : Ddp.of(mine.get(0), mesh.get("dp")));
              int at = mesh.coordinate(0) * ROWS / 2;
              Tensor unused =
                  pipeline.step(rows(at, at + ROWS / 2, WIDTH), target(at, at + ROWS / 2));
              want.check(mine);
            });
  }

  /** 11 rows in 4 microbatches of 3, 3, 3 and 2, and other numbers in the next step. */
  @ParameterizedTest
  @CsvSource({"GPIPE,3,1", "ONE_F_ONE_B,3,1", "INTERLEAVED,2,2", "ZB_H1,3,1", "GPIPE,1,2"})
  void unevenMicrobatchesCountByTheirRows(Schedule schedule, int ranks, int perRank) {
    world(ranks)
        .run(
            rank -> {
              List<Module> mine = stages(rank, ranks, perRank);
              Pipeline pipeline =
                  Pipeline.of(
                          initDeviceMesh("cpu", dim("pp", ranks)),
                          mine,
                          schedule,
                          4,
                          PipelineTest::mse)
                      .withUnevenMicrobatches();
              for (int rows : new int[] {11, 5, 8}) {
                Sequential whole = blocks(ranks * perRank, WIDTH, 7);
                Tensor want = mse(whole.call(rows(0, rows, WIDTH)), target(0, rows));
                want.backward();
                Map<String, float[]> gradients = gradientsOf(List.of(whole));
                mine.forEach(Module::zeroGrad);
                Tensor loss = pipeline.step(rows(0, rows, WIDTH), target(0, rows));
                gradientsOf(mine)
                    .forEach(
                        (name, g) ->
                            assertThat(g).containsExactly(gradients.get(name), offset(1e-6f)));
                if (loss != null) {
                  assertThat(loss.item()).isCloseTo(want.item(), offset(1e-6));
                }
              }
              if (pipeline.isFirst() || pipeline.isLast()) {
                assertThatThrownBy(() -> pipeline.step(rows(0, 3, WIDTH), target(0, 3)))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("at least as many as the 4");
              }
            });
  }

  @Test
  void aBatchThatDoesNotDivideIsRefused() {
    assertThatThrownBy(
            () ->
                LocalWorld.run(
                    2,
                    rank -> {
                      Pipeline p =
                          Pipeline.of(
                              initDeviceMesh("cpu", dim("pp", 2)),
                              stages(rank, 2, 1),
                              Schedule.GPIPE,
                              4,
                              PipelineTest::mse);
                      Tensor unused = p.step(rows(0, 6, WIDTH), target(0, 6));
                    }))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("6 rows")
        .hasMessageContaining("4 microbatches");
  }

  /** The second step's microbatches are larger than those that the stages have agreed on. */
  @Test
  void anotherShapeThanInTheFirstStepIsRefused() {
    assertThatThrownBy(
            () ->
                LocalWorld.run(
                    2,
                    rank -> {
                      Pipeline p =
                          Pipeline.of(
                              initDeviceMesh("cpu", dim("pp", 2)),
                              stages(rank, 2, 1),
                              Schedule.ONE_F_ONE_B,
                              2,
                              PipelineTest::mse);
                      Tensor unused = p.step(rows(0, 4, WIDTH), target(0, 4));
                      unused = p.step(rows(0, 8, WIDTH), target(0, 8));
                    }))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("[4, 5]")
        .hasMessageContaining("[2, 5]");
  }

  /** P61: the activations of a microbatch are gone once its backward is done. */
  @ParameterizedTest
  @CsvSource({"GPIPE,2,false", "GPIPE,2,true", "ZB_H1,1,false"})
  void aStepLeavesNothingBehind(Schedule schedule, int perRank, boolean uneven) {
    world(1)
        .run(
            rank -> {
              List<Module> mine = stages(0, 1, perRank);
              Pipeline p =
                  Pipeline.of(
                      initDeviceMesh("cpu", dim("pp", 1)), mine, schedule, 4, PipelineTest::mse);
              p = uneven ? p.withUnevenMicrobatches() : p;
              long before = 0;
              for (int step = 0; step < 6; step++) {
                try (TensorScope scope = TensorScope.open()) {
                  Tensor unused = p.step(rows(0, ROWS, WIDTH), target(0, ROWS));
                }
                mine.forEach(Module::zeroGrad);
                if (step == 1) {
                  before = HostMemory.liveBytes();
                }
              }
              assertThat(HostMemory.liveBytes()).isLessThanOrEqualTo(before);
            });
  }

  @Test
  void aModelIsSplitByNamesAndKeepsItsPaths() {
    Sequential model = new Sequential(blocks(3, WIDTH, 7), SmallModels.chain(1, WIDTH));
    List<Module> stages = Stages.split(model, List.of("0.*", "1"), List.of("0.2"));
    assertThat(stages.get(0).namedParameters().keySet())
        .containsExactly(
            "0.0.0.weight",
            "0.0.0.bias",
            "0.0.2.weight",
            "0.0.2.bias",
            "0.1.0.weight",
            "0.1.0.bias",
            "0.1.2.weight",
            "0.1.2.bias");
    Tensor x = rows(0, 2, WIDTH);
    assertThat(stages.get(1).call(stages.get(0).call(x)).toFloatArray())
        .containsExactly(model.call(x).toFloatArray());
  }

  @Test
  void badSplitsAreRefused() {
    Sequential model = blocks(3, WIDTH, 7);
    assertThatThrownBy(() -> Stages.split(model, List.of("0", "1"), List.of("1")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("leaves out")
        .hasMessageContaining("2.0.weight");
    assertThatThrownBy(() -> Stages.split(model, List.of("0", "1", "2"), List.of("2", "1")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("starts has '1'");
    assertThatThrownBy(() -> Stages.split(model, List.of("0", "1", "2"), List.of("0")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("stage 0 is empty");
    Tensor shared = SmallModels.weights(1, 4, 4).requiresGrad(true);
    Sequential tied = new Sequential(new Linear(shared, null), new Linear(shared, null));
    assertThatThrownBy(() -> Stages.split(tied, List.of("0", "1"), List.of("1")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("tied between stages 0 and 1");
  }
}
