package dev.weft.examples.reference;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ReduceOp;
import dev.weft.dtensor.tp.Parallelize;
import dev.weft.dtensor.tp.Styles;
import dev.weft.mesh.DeviceMesh;
import dev.weft.optim.Clipping;
import dev.weft.optim.Sgd;
import dev.weft.parallel.Ddp;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.op.Losses;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ReferenceRunsTest {
  @Test
  void theGeneratorGivesTheRecordedNumbers() {
    JsonNode generator = Resources.gzippedTree("golden_gpt.json.gz").get("generator");
    generator
        .get("fnv1a64")
        .properties()
        .forEach(
            e ->
                assertThat(NumberStream.fnv1a64(e.getKey()))
                    .isEqualTo(Long.parseUnsignedLong(e.getValue().asText(), 16)));
    JsonNode stream = generator.get("splitmix64");
    NumberStream numbers =
        new NumberStream(stream.get("seed").asLong(), stream.get("name").asText());
    for (int i = 0; i < stream.get("outputs").size(); i++) {
      assertThat(numbers.at(i))
          .isEqualTo(Long.parseUnsignedLong(stream.get("outputs").get(i).asText(), 16));
    }
  }

  @ParameterizedTest
  @CsvSource({"1,1", "2,1", "1,2", "2,2", "1,4", "4,1"})
  void theDecoderLosesAsRecordedInEveryLayout(int dp, int tp) {
    GptConfig config = GptConfig.reference();
    GoldenRun golden = GoldenRun.of("gpt", dp, tp);
    LocalWorld.run(
        dp * tp,
        rank -> {
          try (GptTraining training =
              new GptTraining(config, new Layout(dp, tp), "cpu", TextBatches.corpus())) {
            for (int step = 0; step < config.steps(); step++) {
              GptTraining.Step s = training.step(step);
              assertThat(golden.difference(step, s.loss(), s.gradNorm())).isEmpty();
            }
          }
        });
  }

  @ParameterizedTest
  @CsvSource({"1,1", "2,1", "1,2", "2,2", "1,4", "4,1"})
  void theClassifierLosesAsRecordedInEveryLayout(int dp, int tp) {
    MlpConfig config = MlpConfig.reference();
    GoldenRun golden = GoldenRun.of("mlp", dp, tp);
    LocalWorld.run(dp * tp, rank -> trainClassifier(config, dp, tp, golden));
  }

  private static void trainClassifier(MlpConfig config, int dp, int tp, GoldenRun golden) {
    DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", dp), dim("tp", tp));
    Mlp model = new Mlp(config);
    if (tp > 1) {
      Mlp unused =
          Parallelize.parallelizeModule(
              model,
              mesh.get("tp"),
              Map.of("fc1", Styles.colwise().localOutput(false), "fc2", Styles.rowwise()));
    }
    if (dp > 1) {
      Ddp unused = Ddp.of(model, mesh.get("dp"));
    }
    Sgd optimizer =
        Sgd.over(model.parameters()).learningRate(config.lr()).momentum(config.momentum()).build();
    ClassBatches batches = new ClassBatches(config);
    int rows = config.batch() / dp;
    int first = mesh.coordinate(0) * rows;
    for (int step = 0; step < config.steps(); step++) {
      try (TensorScope scope = TensorScope.open()) {
        ClassBatches.Batch batch = batches.rows(step, first, first + rows);
        Tensor loss = Losses.crossEntropy(model.call(batch.inputs()), batch.labels());
        loss.backward();
        double norm = Clipping.gradNorm(model.parameters());
        optimizer.step();
        optimizer.zeroGrad();
        Tensor mean = loss.detach();
        mesh.getGroup("dp").allReduce(mean, ReduceOp.AVG);
        assertThat(golden.difference(step, mean.item(), norm)).isEmpty();
      }
    }
    optimizer.close();
  }

  /** P61: what a step makes ends with it, to the byte. */
  @Test
  void memoryDoesNotGrowFromStepToStep() {
    GptConfig config = GptConfig.reference();
    List<Long> live =
        LocalWorld.call(
            1,
            rank -> {
              try (GptTraining training =
                  new GptTraining(config, new Layout(1, 1), "cpu", TextBatches.corpus())) {
                GptTraining.Step unused = training.step(0);
                // Garbage of earlier tests may still go; nothing may come.
                long before = HostMemory.liveBytes();
                for (int step = 1; step < 20; step++) {
                  unused = training.step(step);
                }
                assertThat(HostMemory.liveBytes()).isLessThanOrEqualTo(before);
                return before;
              }
            });
    assertThat(live).hasSize(1);
  }

  @Test
  void layoutsAreReadAndRefused() {
    assertThat(Layout.parse("dp=2,tp=4")).isEqualTo(new Layout(2, 4));
    assertThat(Layout.parse("tp=4").ranks()).isEqualTo(4);
    org.assertj.core.api.Assertions.assertThatThrownBy(() -> Layout.parse("pp=2"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("pp=2")
        .hasMessageContaining("dp=2,tp=2");
  }
}
