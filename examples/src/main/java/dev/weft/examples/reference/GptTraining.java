package dev.weft.examples.reference;

import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.tp.Styles.colwise;
import static dev.weft.dtensor.tp.Styles.rowwise;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.ReduceOp;
import dev.weft.dtensor.tp.ParallelStyle;
import dev.weft.dtensor.tp.Parallelize;
import dev.weft.mesh.DeviceMesh;
import dev.weft.optim.AdamW;
import dev.weft.optim.Clipping;
import dev.weft.parallel.Ddp;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Views;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** Trains the decoder on one rank of a data-parallel by tensor-parallel mesh. */
public final class GptTraining implements AutoCloseable {
  private static final Map<String, ParallelStyle> PLAN = plan();

  private final GptConfig config;
  private final Layout layout;
  private final Device device;
  private final TextBatches batches;
  private final DeviceMesh mesh;
  private final Gpt model;
  private final AdamW optimizer;

  /**
   * Sets up this rank; to be called on all ranks of a world of {@code layout.ranks()}.
   *
   * @param deviceType {@code cpu}, or {@code cuda} for this thread's current device
   * @param text what to train on
   */
  public GptTraining(GptConfig config, Layout layout, String deviceType, byte[] text) {
    check(config, layout);
    this.config = config;
    this.layout = layout;
    this.batches = new TextBatches(text, config);
    this.mesh = initDeviceMesh(deviceType, dim("dp", layout.dp()), dim("tp", layout.tp()));
    this.device = deviceType.equals("cuda") ? Device.cuda(Cuda.currentDevice()) : Device.CPU;
    this.model = new Gpt(config);
    model.to(device);
    if (layout.tp() > 1) {
      Gpt unused = Parallelize.parallelizeModule(model, mesh.get("tp"), PLAN);
    }
    if (layout.dp() > 1) {
      Ddp unused = Ddp.of(model, mesh.get("dp"));
    }
    this.optimizer =
        AdamW.over(model.parameters())
            .betas(config.betas()[0], config.betas()[1])
            .eps(config.eps())
            .weightDecay(config.weightDecay())
            .decayOnly(p -> p.ndim() > 1)
            .build();
  }

  /** Refuses a layout that does not divide the work. */
  public static void check(GptConfig config, Layout layout) {
    if (config.batch() % layout.dp() != 0 || config.nHeads() % layout.tp() != 0) {
      throw new IllegalArgumentException(
          "mesh "
              + layout
              + ": dp must divide the batch of "
              + config.batch()
              + " rows, and tp the "
              + config.nHeads()
              + " heads");
    }
  }

  private static Map<String, ParallelStyle> plan() {
    Map<String, ParallelStyle> plan = new LinkedHashMap<>();
    plan.put("tok_emb", rowwise());
    plan.put("layers.*.attn.w[qkv]", colwise());
    plan.put("layers.*.attn.wo", rowwise());
    plan.put("layers.*.ffn.w[13]", colwise().localOutput(false));
    plan.put("layers.*.ffn.w2", rowwise());
    plan.put("output", colwise().output(replicate()));
    return plan;
  }

  /**
   * What a step gave, the same on all ranks.
   *
   * @param loss the mean over the whole batch, before the update
   * @param gradNorm the norm of all gradients, before clipping
   */
  public record Step(double loss, double gradNorm) {}

  /** Runs step number {@code step}, from 0. */
  public Step step(int step) {
    try (TensorScope scope = TensorScope.open()) {
      int rows = config.batch() / layout.dp();
      int first = mesh.coordinate(0) * rows;
      TextBatches.Batch batch = batches.rows(step, first, first + rows);
      Tensor logits = model.call(batch.inputs().to(device));
      Tensor loss =
          Losses.crossEntropy(
              Views.reshape(logits, -1, config.vocab()),
              Views.reshape(batch.targets().to(device), -1));
      loss.backward();
      double norm = Clipping.clipGradNorm(model.parameters(), config.clip());
      optimizer.learningRate(config.learningRate(step));
      optimizer.step();
      optimizer.zeroGrad();
      Tensor mean = loss.detach();
      if (layout.dp() > 1) {
        mesh.getGroup("dp").allReduce(mean, ReduceOp.AVG);
      }
      return new Step(mean.item(), norm);
    }
  }

  /** Tokens of one step over all ranks. */
  public int tokensPerStep() {
    return config.batch() * config.seq();
  }

  /** The model, some of whose parameters are distributed. */
  public Gpt model() {
    return model;
  }

  /**
   * Text that the model continues; the same on all ranks, which all call it.
   *
   * @param prompt ASCII
   * @param length bytes to add
   * @param temperature above 0; lower is more certain
   */
  public String sample(String prompt, int length, double temperature) {
    NumberStream random = new NumberStream(config.seed(), "sample");
    StringBuilder text = new StringBuilder(prompt);
    for (int i = 0; i < length; i++) {
      byte[] all = text.toString().getBytes(StandardCharsets.ISO_8859_1);
      int used = Math.min(all.length, config.seq());
      long[] window = new long[used];
      for (int k = 0; k < used; k++) {
        window[k] = all[all.length - used + k] & 0xff;
      }
      float[] logits;
      try (TensorScope scope = TensorScope.open()) {
        logits =
            Autograd.noGrad(
                () ->
                    Views.select(
                            Views.select(model.call(Tensor.of(window, 1, used).to(device)), 0, 0),
                            0,
                            used - 1)
                        .toFloatArray());
      }
      text.append((char) choose(logits, temperature, (random.symmetric(i) + 1) / 2));
    }
    return text.toString();
  }

  private static int choose(float[] logits, double temperature, double uniform) {
    double max = Double.NEGATIVE_INFINITY;
    for (float l : logits) {
      max = Math.max(max, l);
    }
    double[] weights = new double[logits.length];
    double sum = 0;
    for (int i = 0; i < logits.length; i++) {
      weights[i] = Math.exp((logits[i] - max) / temperature);
      sum += weights[i];
    }
    double left = uniform * sum;
    for (int i = 0; i < weights.length; i++) {
      left -= weights[i];
      if (left < 0) {
        return i;
      }
    }
    return weights.length - 1;
  }

  @Override
  public void close() {
    optimizer.close();
  }
}
