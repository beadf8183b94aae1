package dev.weft.examples.reference;

import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.tp.Styles.colwise;
import static dev.weft.dtensor.tp.Styles.rowwise;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.tp.ParallelStyle;
import dev.weft.dtensor.tp.Parallelize;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Module;
import dev.weft.nn.Recompute;
import dev.weft.optim.AdamW;
import dev.weft.optim.Clipping;
import dev.weft.optim.Sgd;
import dev.weft.parallel.Ddp;
import dev.weft.parallel.FullySharded;
import dev.weft.parallel.FullyShardedPolicy;
import dev.weft.parallel.GradientSync;
import dev.weft.parallel.pipeline.Pipeline;
import dev.weft.parallel.pipeline.Schedule;
import dev.weft.parallel.pipeline.Stages;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Views;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Losses, gradient norms and final parameters of sharded and pipelined runs are the recorded. */
class ParallelRunsTest {
  private static final int MICROBATCHES = 4;

  private static Map<String, ParallelStyle> plan(Module part) {
    Map<String, ParallelStyle> all = new LinkedHashMap<>();
    all.put("tok_emb", rowwise());
    all.put("layers.*.attn.w[qkv]", colwise());
    all.put("layers.*.attn.wo", rowwise());
    all.put("layers.*.ffn.w[13]", colwise().localOutput(false));
    all.put("layers.*.ffn.w2", rowwise());
    all.put("output", colwise().output(replicate()));
    all.keySet().removeIf(p -> !p.contains("*") && !part.children().containsKey(p));
    return all;
  }

  private static Tensor decoderLoss(Tensor logits, Tensor targets) {
    return Losses.crossEntropy(
        Views.reshape(logits, -1, logits.size(-1)), Views.reshape(targets, -1));
  }

  private static Module shardDecoder(Gpt model, DeviceMesh dp, FullyShardedPolicy policy) {
    for (Module block : model.module("layers").children().values()) {
      FullySharded unused = FullySharded.fullyShard(block, dp, policy);
    }
    return FullySharded.fullyShard(model, dp, policy).module();
  }

  private static AdamW adam(GptConfig config, Module model) {
    return AdamW.over(model.parameters())
        .betas(config.betas()[0], config.betas()[1])
        .eps(config.eps())
        .weightDecay(config.weightDecay())
        .decayOnly(p -> p.ndim() > 1)
        .build();
  }

  /** The recorded tolerance: 5e-6. */
  private static void checkParameters(GoldenRun golden, Module model) {
    model
        .namedParameters()
        .forEach(
            (name, p) -> {
              float[] values =
                  Autograd.noGrad(
                      () -> (p instanceof DTensor d ? d.fullTensor() : p).toFloatArray());
              double sum = IntStream.range(0, values.length).mapToDouble(i -> values[i]).sum();
              double squares =
                  IntStream.range(0, values.length)
                      .mapToDouble(i -> (double) values[i] * values[i])
                      .sum();
              double want = golden.sumOfSquares(name);
              assertThat(Math.abs(sum - golden.sum(name)) / Math.sqrt(values.length * want))
                  .as("sum of %s", name)
                  .isCloseTo(0, within(GoldenRun.TOLERANCE));
              assertThat(Math.abs(squares - want) / want)
                  .as("squares of %s", name)
                  .isCloseTo(0, within(GoldenRun.TOLERANCE));
            });
  }

  /** A value that each stage has a share of. */
  private static double total(ProcessGroup group, double share) {
    Tensor sum = Tensor.of(new double[] {share}, 1);
    Work unused = group.allReduce(sum, ReduceOp.SUM, CollectiveOptions.SYNC);
    return sum.item();
  }

  @ParameterizedTest
  @CsvSource({
    "2,1,fsdp2,true,false",
    "2,1,fsdp2,false,false",
    "2,2,fsdp2_tp2,true,false",
    "2,2,fsdp2_tp2,true,true",
    "4,1,single,true,false"
  })
  void theShardedDecoderLosesAsRecorded(
      int dp, int tp, String layout, boolean reshard, boolean recompute) {
    GptConfig config = GptConfig.reference();
    GoldenRun golden = GoldenRun.named("gpt", layout);
    TextBatches batches = new TextBatches(TextBatches.corpus(), config);
    LocalWorld.run(
        dp * tp,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", dp), dim("tp", tp));
          Gpt model = new Gpt(config);
          if (tp > 1) {
            Gpt unused = Parallelize.parallelizeModule(model, mesh.get("tp"), plan(model));
          }
          if (recompute) {
            model.module("layers").children().values().forEach(Recompute::of);
          }
          Module sharded =
              shardDecoder(
                  model,
                  mesh.get("dp"),
                  FullyShardedPolicy.DEFAULT.withReshardAfterForward(reshard));
          AdamW optimizer = adam(config, sharded);
          int rows = config.batch() / dp;
          int first = mesh.coordinate(0) * rows;
          for (int step = 0; step < config.steps(); step++) {
            try (TensorScope scope = TensorScope.open()) {
              TextBatches.Batch batch = batches.rows(step, first, first + rows);
              Tensor loss = decoderLoss(sharded.call(batch.inputs()), batch.targets());
              loss.backward();
              double norm = Clipping.clipGradNorm(sharded.parameters(), config.clip());
              optimizer.learningRate(config.learningRate(step));
              optimizer.step();
              optimizer.zeroGrad();
              Tensor mean = loss.detach();
              Work unused = mesh.getGroup("dp").allReduce(mean, ReduceOp.AVG);
              assertThat(golden.difference(step, mean.item(), norm)).isEmpty();
            }
          }
          checkParameters(golden, sharded);
          optimizer.close();
        });
  }

  @ParameterizedTest
  @CsvSource({"2,1,fsdp2", "2,2,fsdp2_tp2"})
  void theShardedClassifierLosesAsRecorded(int dp, int tp, String layout) {
    MlpConfig config = MlpConfig.reference();
    GoldenRun golden = GoldenRun.named("mlp", layout);
    ClassBatches batches = new ClassBatches(config);
    LocalWorld.run(
        dp * tp,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", dp), dim("tp", tp));
          Mlp model = new Mlp(config);
          if (tp > 1) {
            Mlp unused =
                Parallelize.parallelizeModule(
                    model,
                    mesh.get("tp"),
                    Map.of("fc1", colwise().localOutput(false), "fc2", rowwise()));
          }
          Module sharded = FullySharded.fullyShard(model, mesh.get("dp")).module();
          Sgd optimizer =
              Sgd.over(sharded.parameters())
                  .learningRate(config.lr())
                  .momentum(config.momentum())
                  .build();
          int rows = config.batch() / dp;
          int first = mesh.coordinate(0) * rows;
          for (int step = 0; step < config.steps(); step++) {
            try (TensorScope scope = TensorScope.open()) {
              ClassBatches.Batch batch = batches.rows(step, first, first + rows);
              Tensor loss = Losses.crossEntropy(sharded.call(batch.inputs()), batch.labels());
              loss.backward();
              double norm = Clipping.gradNorm(sharded.parameters());
              optimizer.step();
              optimizer.zeroGrad();
              Tensor mean = loss.detach();
              Work unused = mesh.getGroup("dp").allReduce(mean, ReduceOp.AVG);
              assertThat(golden.difference(step, mean.item(), norm)).isEmpty();
            }
          }
          checkParameters(golden, sharded);
          optimizer.close();
        });
  }

  /** The last lines: eight ranks, three dimensions. */
  @ParameterizedTest
  @CsvSource({
    "1,1,GPIPE,gpipe,none",
    "1,1,ONE_F_ONE_B,1f1b,none",
    "1,1,ZB_H1,1f1b,none",
    "2,1,ONE_F_ONE_B,single,sharded",
    "2,2,GPIPE,single,replicated",
    "2,2,ZB_H1,single,replicated",
    "2,2,ZB_H1,single,sharded",
    "2,2,ONE_F_ONE_B,single,sharded"
  })
  void thePipelinedDecoderLosesAsRecorded(
      int dp, int tp, Schedule schedule, String layout, String replicas) {
    GptConfig config = GptConfig.reference();
    GoldenRun golden = GoldenRun.named("gpt", layout);
    TextBatches batches = new TextBatches(TextBatches.corpus(), config);
    int stages = 2;
    LocalWorld.run(
        dp * stages * tp,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", dp), dim("pp", stages), dim("tp", tp));
          int half = (config.nLayers() + 1) / 2;
          Module stage =
              Stages.split(
                      new Gpt(config),
                      List.of("tok_emb", "layers.*", "norm", "output"),
                      List.of("layers." + half))
                  .get(mesh.coordinate(1));
          if (tp > 1) {
            Module unused = Parallelize.parallelizeModule(stage, mesh.get("tp"), plan(stage));
          }
          Pipeline pipeline =
              Pipeline.of(
                  mesh.get("pp"),
                  List.of(stage),
                  schedule,
                  MICROBATCHES / dp,
                  ParallelRunsTest::decoderLoss);
          if (!replicas.equals("none")) {
            GradientSync sync =
                replicas.equals("sharded")
                    ? FullySharded.fullyShard(stage, mesh.get("dp"))
                    : Ddp.of(stage, mesh.get("dp"));
            Pipeline unused = pipeline.withSync(0, sync);
          }
          AdamW optimizer = adam(config, stage);
          int rows = config.batch() / dp;
          int first = mesh.coordinate(0) * rows;
          for (int step = 0; step < config.steps(); step++) {
            try (TensorScope scope = TensorScope.open()) {
              TextBatches.Batch batch = batches.rows(step, first, first + rows);
              Tensor loss = pipeline.step(batch.inputs(), batch.targets());
              double own = Clipping.gradNorm(stage.parameters());
              double norm = Math.sqrt(total(mesh.getGroup("pp"), own * own));
              float scale = (float) Math.min(1, config.clip() / (norm + 1e-6));
              Autograd.noGrad(() -> stage.parameters().forEach(p -> InPlace.mul(p.grad(), scale)));
              optimizer.learningRate(config.learningRate(step));
              optimizer.step();
              optimizer.zeroGrad();
              double last = total(mesh.getGroup("pp"), loss == null ? 0 : loss.item());
              double mean = total(mesh.getGroup("dp"), last) / dp;
              assertThat(golden.difference(step, mean, norm)).isEmpty();
            }
          }
          checkParameters(golden, stage);
          optimizer.close();
        });
  }
}
