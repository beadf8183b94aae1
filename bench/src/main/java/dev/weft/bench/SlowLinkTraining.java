package dev.weft.bench;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LinkShape;
import dev.weft.c10d.LocalWorld;
import dev.weft.examples.reference.Gpt;
import dev.weft.examples.reference.GptConfig;
import dev.weft.examples.reference.TextBatches;
import dev.weft.mesh.DeviceMesh;
import dev.weft.optim.AdamW;
import dev.weft.optim.Clipping;
import dev.weft.parallel.CommunicationHook;
import dev.weft.parallel.Ddp;
import dev.weft.parallel.DdpOptions;
import dev.weft.parallel.LocalSgd;
import dev.weft.parallel.PowerSgd;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Views;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Training over a slow link: how many tokens and how much time it takes to a loss, synchronously
 * and with islands that agree now and then. Two islands of one rank each train the reference
 * decoder on the text that comes with the examples; the host backend holds their messages as the
 * link would.
 */
public final class SlowLinkTraining {
  private static final int ISLANDS = 2;
  // Steps between looks at the loss; a multiple of the rounds below.
  private static final int LOOK = 20;
  private static final int WARMUP = 20;
  // Batches at other positions of the text than those of training.
  private static final int HELD_OUT = 1 << 20;

  private final Rows rows;
  private final LinkShape link;
  private final double target;
  private final int maxSteps;

  /** A way of training. */
  public enum Way {
    /** Gradients averaged in every step. */
    SYNCHRONOUS(1),
    /** The same, sent as products of matrices of rank 2 after the first 20 steps. */
    POWER_SGD(1),
    /** Parameters averaged every 20 steps. */
    LOCAL_SGD(20),
    /** An outer step of momentum every 20 steps. */
    DILOCO(20);

    private final int innerSteps;

    Way(int innerSteps) {
      this.innerSteps = innerSteps;
    }
  }

  /**
   * What it took.
   *
   * @param steps until the held-out loss was at the target, or -1
   * @param seconds of training until then
   * @param loss the last held-out loss
   */
  public record Result(int steps, double seconds, double loss) {}

  /**
   * A benchmark.
   *
   * @param delay of each message between the islands
   * @param bytesPerSecond of the link, one way
   * @param target the held-out loss to reach
   * @param maxSteps when to give up
   */
  public SlowLinkTraining(
      Rows rows, Duration delay, double bytesPerSecond, double target, int maxSteps) {
    this.rows = rows;
    this.link = new LinkShape(1, delay, bytesPerSecond);
    this.target = target;
    this.maxSteps = maxSteps;
  }

  /** Measures all ways. */
  public void run() {
    for (Way way : Way.values()) {
      Result unused = measure(way);
    }
  }

  /** Measures one way. */
  public Result measure(Way way) {
    GptConfig config = GptConfig.reference();
    Result result = LocalWorld.of(ISLANDS).slowLinks(link).call(rank -> train(way, config)).get(0);
    add(way, "loss", result.loss, "nats");
    if (result.steps > 0) {
      add(way, "tokens_to_loss", (double) result.steps * config.batch() * config.seq(), "tokens");
      add(way, "time_to_loss", result.seconds, "s");
    }
    return result;
  }

  private void add(Way way, String bench, double value, String unit) {
    rows.addValue(
        bench,
        value,
        unit,
        "way",
        way.name(),
        "inner_steps",
        way.innerSteps,
        "delay_ms",
        link.delay().toMillis(),
        "link_mb_s",
        link.bytesPerSecond() / 1e6,
        "target",
        target);
  }

  private Result train(Way way, GptConfig config) {
    DeviceMesh mesh = initDeviceMesh("cpu", dim("island", ISLANDS));
    Gpt model = new Gpt(config);
    TextBatches batches = new TextBatches(TextBatches.corpus(), config);
    @Nullable LocalSgd outer = null;
    if (way == Way.LOCAL_SGD) {
      outer = LocalSgd.averaging(model.parameters(), mesh, way.innerSteps);
    } else if (way == Way.DILOCO) {
      outer = LocalSgd.diLoCo(model.parameters(), mesh, way.innerSteps);
    } else {
      CommunicationHook hook =
          way == Way.POWER_SGD
              ? PowerSgd.of(2).withStartStep(WARMUP)
              : CommunicationHook.allReduce();
      Ddp unused = Ddp.of(model, mesh, DdpOptions.DEFAULT.withHook(hook));
    }
    int each = config.batch() / ISLANDS;
    int first = mesh.getLocalRank() * each;
    double seconds = 0;
    double loss = Double.NaN;
    try (AdamW optimizer =
        AdamW.over(model.parameters())
            .betas(config.betas()[0], config.betas()[1])
            .weightDecay(config.weightDecay())
            .decayOnly(p -> p.ndim() > 1)
            .build()) {
      for (int step = 1; step <= maxSteps; step++) {
        long start = System.nanoTime();
        try (TensorScope scope = TensorScope.open()) {
          loss(model, batches.rows(step, first, first + each)).backward();
          double unused = Clipping.clipGradNorm(model.parameters(), config.clip());
          optimizer.learningRate(config.lr() * Math.min(1, (double) step / WARMUP));
          optimizer.step();
          optimizer.zeroGrad();
          if (outer != null) {
            boolean unusedAgreed = outer.step();
          }
        }
        seconds += (System.nanoTime() - start) / 1e9;
        if (step % LOOK == 0) {
          loss = heldOut(model, batches, config);
          // On all alike: the parameters are the same here.
          if (loss <= target) {
            return new Result(step, seconds, loss);
          }
        }
      }
    } finally {
      if (outer != null) {
        outer.close();
      }
    }
    Distributed.barrier().await();
    return new Result(-1, seconds, loss);
  }

  private static Tensor loss(Gpt model, TextBatches.Batch batch) {
    Tensor logits = model.call(batch.inputs());
    return Losses.crossEntropy(
        Views.reshape(logits, -1, logits.size(-1)), Views.reshape(batch.targets(), -1));
  }

  private static double heldOut(Gpt model, TextBatches batches, GptConfig config) {
    double sum = 0;
    int count = 4;
    for (int i = 0; i < count; i++) {
      int step = HELD_OUT + i;
      try (TensorScope scope = TensorScope.open()) {
        sum += Autograd.noGrad(() -> loss(model, batches.rows(step, 0, config.batch())).item());
      }
    }
    return sum / count;
  }
}
