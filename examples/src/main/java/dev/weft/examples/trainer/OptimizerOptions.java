package dev.weft.examples.trainer;

import dev.weft.optim.AdamW;
import dev.weft.optim.Schedule;
import dev.weft.tensor.Tensor;
import java.util.List;
import picocli.CommandLine.Option;

/** AdamW, its learning rate and the batch; the defaults are the reference's. */
final class OptimizerOptions {
  @Option(
      names = "--steps",
      paramLabel = "N",
      description = "updates of the whole run, which the rate follows (default: ${DEFAULT-VALUE})")
  int steps = 40;

  @Option(
      names = "--batch",
      paramLabel = "N",
      description = "samples of an update, over all ranks (default: ${DEFAULT-VALUE})")
  int batch = 8;

  @Option(
      names = "--lr",
      paramLabel = "X",
      description = "the highest learning rate (default: ${DEFAULT-VALUE})")
  double rate = 3e-3;

  @Option(
      names = "--min-lr",
      paramLabel = "X",
      description = "what the cosine goes down to (default: ${DEFAULT-VALUE})")
  double least = 0;

  @Option(
      names = "--warmup",
      paramLabel = "N",
      description = "steps in which the rate rises (default: ${DEFAULT-VALUE})")
  int warmup = 5;

  @Option(names = "--beta1", paramLabel = "X", description = "(default: ${DEFAULT-VALUE})")
  double beta1 = 0.9;

  @Option(names = "--beta2", paramLabel = "X", description = "(default: ${DEFAULT-VALUE})")
  double beta2 = 0.95;

  @Option(
      names = "--weight-decay",
      paramLabel = "X",
      description = "of matrices; norms do not decay (default: ${DEFAULT-VALUE})")
  double weightDecay = 0.1;

  @Option(
      names = "--clip",
      paramLabel = "X",
      description = "the largest norm of the gradient, over all ranks (default: ${DEFAULT-VALUE})")
  double clip = 1;

  void check() {
    boolean steady = steps >= 1 && warmup >= 0 && warmup < steps;
    if (!steady) {
      throw new IllegalArgumentException(
          "--steps " + steps + " with --warmup " + warmup + "; expected 0 <= warmup < steps");
    }
    if (!(rate > 0) || !(least >= 0 && least <= rate)) {
      throw new IllegalArgumentException(
          "--lr " + rate + " with --min-lr " + least + "; expected 0 <= min-lr <= lr and lr > 0");
    }
    if (!(clip > 0)) {
      throw new IllegalArgumentException("--clip " + clip + "; expected more than 0");
    }
    if (!(weightDecay >= 0)) {
      throw new IllegalArgumentException("--weight-decay " + weightDecay + "; expected 0 or more");
    }
    for (double beta : new double[] {beta1, beta2}) {
      if (!(beta >= 0 && beta < 1)) {
        throw new IllegalArgumentException(
            "--beta1 " + beta1 + " with --beta2 " + beta2 + "; expected 0 <= beta < 1");
      }
    }
    if (batch < 1) {
      throw new IllegalArgumentException("--batch " + batch + "; expected 1 or more");
    }
  }

  /** The rate of each step, from 0. */
  Schedule schedule() {
    Schedule toZero = Schedule.cosineWithWarmup(rate, warmup, steps);
    double part = 1 - least / rate;
    return step -> step < warmup ? toZero.at(step) : least + part * toZero.at(step);
  }

  AdamW over(List<Tensor> parameters) {
    return AdamW.over(parameters)
        .learningRate(rate)
        .betas(beta1, beta2)
        .eps(1e-8)
        .weightDecay(weightDecay)
        .decayOnly(p -> p.ndim() > 1)
        .build();
  }
}
