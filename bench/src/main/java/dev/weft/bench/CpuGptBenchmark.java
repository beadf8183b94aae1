package dev.weft.bench;

import dev.weft.c10d.Distributed;
import dev.weft.examples.reference.GptConfig;
import dev.weft.examples.reference.GptTraining;
import dev.weft.examples.reference.Layout;
import dev.weft.examples.reference.TextBatches;
import java.util.Arrays;

/**
 * Training throughput of the reference decoder on CPU, alone or on a data-parallel by
 * tensor-parallel mesh: batch, forward, backward, gradient mean, clipping, AdamW. To be run on all
 * ranks of a world of the layout's size.
 *
 * <p>A JVM compiles what it runs while it runs it, so there are two figures: {@code train_gpt_cpu}
 * is of the steps after the warm-up, {@code train_gpt_cpu_cold} of the first steps but three.
 */
public final class CpuGptBenchmark {
  private static final int SKIPPED = 3;

  private final Model model;
  private final Plan plan;

  /** What is trained. */
  public enum Model {
    /** The reference configuration: width 64, 2 layers, 8 rows of 64 tokens. */
    B,
    /** Width 256, 4 layers, 8 rows of 128 tokens. */
    Bp;

    GptConfig config(int steps) {
      GptConfig c = GptConfig.reference();
      if (this == B) {
        return c.withSteps(steps);
      }
      return new GptConfig(
          c.seed(),
          c.vocab(),
          256,
          c.nHeads(),
          4,
          688,
          128,
          c.normEps(),
          c.ropeTheta(),
          c.batch(),
          steps,
          c.lr(),
          c.warmup(),
          c.betas(),
          c.eps(),
          c.weightDecay(),
          c.clip());
    }
  }

  /**
   * How it is trained.
   *
   * @param mode the row's name for the layout and the threads of a rank
   * @param layout the mesh
   * @param warmUp steps before those that count
   * @param steps steps that count
   */
  public record Plan(String mode, Layout layout, int warmUp, int steps) {}

  /** A benchmark of one model. */
  public CpuGptBenchmark(Model model, Plan plan) {
    this.model = model;
    this.plan = plan;
  }

  /**
   * Trains on the calling rank.
   *
   * @param rows where rank 0 prints
   * @return the loss of the last step, the same on all ranks
   */
  public double run(Rows rows) {
    int total = plan.warmUp + plan.steps;
    double[] seconds = new double[total];
    double loss = Double.NaN;
    GptConfig config = model.config(total);
    int tokens;
    try (GptTraining training = new GptTraining(config, plan.layout, "cpu", TextBatches.corpus())) {
      tokens = training.tokensPerStep();
      for (int step = 0; step < total; step++) {
        long start = System.nanoTime();
        loss = training.step(step).loss();
        if (plan.layout.ranks() > 1) {
          Distributed.world().barrier();
        }
        seconds[step] = (System.nanoTime() - start) * 1e-9;
      }
    }
    if (Distributed.rank() == 0) {
      int cold = Math.min(SKIPPED, total - 1);
      add(rows, "train_gpt_cpu_cold", tokens, seconds, cold, Math.min(total, cold + plan.steps));
      add(rows, "train_gpt_cpu", tokens, seconds, plan.warmUp, total);
    }
    return loss;
  }

  private void add(Rows rows, String bench, int tokens, double[] seconds, int from, int to) {
    Timing.Result result = Timing.Result.of(Arrays.copyOfRange(seconds, from, to));
    Object[] params = {"model", model.name(), "mode", plan.mode, "stat", "median"};
    rows.addValue(bench, tokens / result.median(), "tokens/s", params);
    params[5] = "best";
    rows.addValue(bench, tokens / result.best(), "tokens/s", params);
  }
}
