package dev.weft.bench;

import dev.weft.examples.reference.Gpt;
import dev.weft.examples.reference.GptConfig;
import dev.weft.nn.Autocast;
import dev.weft.nn.Module;
import dev.weft.optim.AdamW;
import dev.weft.optim.Clipping;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.cuda.CudaMath;
import dev.weft.tensor.cuda.CudaMemory;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Views;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.Random;
import org.jspecify.annotations.Nullable;

/**
 * Training throughput of a GPT on one device: forward, backward, clipping to norm 1, AdamW. Mixed
 * precision keeps float32 weights and computes products in bfloat16. The text is periodic, so the
 * loss must fall.
 */
public final class TrainGptBenchmark {
  private static final int PERIOD = 97;

  private final Rows rows;
  private final Options options;
  private final @Nullable PrintStream profile;

  /**
   * What to train.
   *
   * @param device {@code cpu} or {@code cuda}
   * @param batch rows a step
   * @param seq tokens a row
   * @param dModel width
   * @param heads attention heads
   * @param layers blocks
   * @param dFf width of the gated layers
   * @param vocab number of tokens
   * @param warmup steps that are not timed
   * @param steps timed steps
   */
  public record Options(
      String device,
      int batch,
      int seq,
      int dModel,
      int heads,
      int layers,
      int dFf,
      int vocab,
      int warmup,
      int steps) {
    /** The model that PyTorch's figures are of. */
    public static Options standard(String device, int batch) {
      return new Options(device, batch, 1024, 1024, 16, 12, 2736, 256, 3, 10);
    }

    /** A few tokens through a few weights, to see that it runs. */
    public static Options tiny(String device) {
      return new Options(device, 4, 32, 64, 4, 4, 176, 256, 1, 3);
    }
  }

  /**
   * A benchmark that prints to {@code rows}.
   *
   * @param profile where to print the device time by operator of the last step, or null not to
   */
  public TrainGptBenchmark(Rows rows, Options options, @Nullable PrintStream profile) {
    this.rows = rows;
    this.options = options;
    this.profile = profile;
  }

  /** How numbers are held and multiplied. */
  public enum Precision {
    /** float32 throughout. */
    fp32,
    /** float32, multiplied as TF32. */
    tf32,
    /** float32 weights, bfloat16 products. */
    bf16
  }

  /**
   * Trains and prints tokens a second, and on a GPU the peak memory.
   *
   * @return the losses of all steps
   */
  public double[] run(Precision precision) {
    Device device =
        options.device.equals("cuda")
            ? Device.cuda(Cuda.currentDevice())
            : Device.parse(options.device);
    boolean tf32 = CudaMath.isTf32Allowed();
    CudaMath.allowTf32(precision == Precision.tf32);
    try {
      return train(precision, device);
    } finally {
      CudaMath.allowTf32(tf32);
    }
  }

  private double[] train(Precision precision, Device device) {
    Module model = new Gpt(config(options)).to(device);
    long[] tokens = text(options, options.batch * (options.seq + 1));
    Tensor all = Tensor.of(tokens, options.batch, options.seq + 1).to(device);
    Tensor x = all.slice(1, 0, options.seq).contiguous();
    Tensor y = Views.reshape(all.slice(1, 1, options.seq + 1).contiguous(), -1);
    if (device.isCuda()) {
      CudaMemory.resetPeak(device.index());
    }
    int total = options.warmup + options.steps;
    double[] losses = new double[total];
    double[] seconds = new double[options.steps];
    double[] host = new double[options.steps];
    double first = 0;
    try (AdamW optimizer =
        AdamW.over(model.parameters())
            .learningRate(3e-4)
            .betas(0.9, 0.95)
            .eps(1e-8)
            .weightDecay(0.1)
            .decayOnly(p -> p.ndim() > 1)
            .build()) {
      for (int step = 0; step < total; step++) {
        synchronize(device);
        long start = System.nanoTime();
        long launched;
        PrintStream report = step == total - 1 && device.isCuda() ? profile : null;
        OpProfile ops = new OpProfile(device.index());
        try (TensorScope scope = TensorScope.open();
            Dispatcher.Installed watched = report == null ? () -> {} : Dispatcher.install(ops)) {
          Tensor loss = loss(model, x, y, precision);
          loss.backward();
          double unused = Clipping.clipGradNorm(model.parameters(), 1);
          optimizer.step();
          optimizer.zeroGrad();
          launched = System.nanoTime();
          synchronize(device);
          if (step == 0) {
            first = (System.nanoTime() - start) * 1e-9;
          }
          if (step >= options.warmup) {
            seconds[step - options.warmup] = (System.nanoTime() - start) * 1e-9;
            host[step - options.warmup] = (launched - start) * 1e-9;
          }
          losses[step] = loss.item();
        }
        if (report != null) {
          report.print(ops.report());
        }
      }
    }
    report(precision, device, first, seconds, host, losses);
    model.parameters().forEach(Tensor::close);
    x.close();
    y.close();
    all.close();
    return losses;
  }

  private Tensor loss(Module model, Tensor x, Tensor y, Precision precision) {
    Tensor logits;
    if (precision == Precision.bf16) {
      try (Autocast cast = Autocast.to(DType.BFLOAT16)) {
        logits = model.call(x);
      }
    } else {
      logits = model.call(x);
    }
    return Losses.crossEntropy(Views.reshape(logits.to(DType.FLOAT32), -1, options.vocab), y);
  }

  private void report(
      Precision precision,
      Device device,
      double first,
      double[] seconds,
      double[] host,
      double[] losses) {
    double median = median(seconds);
    Object[] params = {
      "precision", precision.name(),
      "attention", "sdpa",
      "batch", options.batch,
      "d_model", options.dModel,
      "layers", options.layers,
      "seq", options.seq,
      "vocab", options.vocab,
      "device", device.type()
    };
    rows.addValue(
        "gpu_train_gpt", options.batch * (double) options.seq / median, "tokens/s", params);
    rows.addValue("gpu_train_gpt_step", median * 1e3, "ms", params);
    rows.addValue("gpu_train_gpt_first_step", first * 1e3, "ms", params);
    rows.addValue("gpu_train_gpt_host", median(host) * 1e3, "ms", params);
    rows.addValue("gpu_train_gpt_loss_last", losses[losses.length - 1], "nats", params);
    if (device.isCuda()) {
      CudaMemory.Stats s = CudaMemory.stats(device.index());
      rows.addValue(
          "gpu_train_gpt_peak_memory",
          s.peakAllocatedBytes() / (double) (1 << 20),
          "MiB",
          with(params, "what", "allocated"));
      rows.addValue(
          "gpu_train_gpt_peak_memory",
          s.peakReservedBytes() / (double) (1 << 20),
          "MiB",
          with(params, "what", "reserved"));
    }
  }

  private static Object[] with(Object[] params, String name, Object value) {
    Object[] more = Arrays.copyOf(params, params.length + 2);
    more[params.length] = name;
    more[params.length + 1] = value;
    return more;
  }

  static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }

  private static void synchronize(Device device) {
    if (device.isCuda()) {
      Cuda.synchronize(device.index());
    }
  }

  /** A text that repeats itself, so that a model learns it. */
  static long[] text(Options options, int length) {
    Random random = new Random(2);
    long[] base = random.longs(PERIOD, 0, options.vocab).toArray();
    long[] text = new long[length];
    Arrays.setAll(text, i -> base[i % PERIOD]);
    return text;
  }

  /** The model's form. */
  static GptConfig config(Options options) {
    return new GptConfig(
        1,
        options.vocab,
        options.dModel,
        options.heads,
        options.layers,
        options.dFf,
        options.seq,
        1e-5,
        10000,
        options.batch,
        options.warmup + options.steps,
        3e-4,
        0,
        new double[] {0.9, 0.95},
        1e-8,
        0.1,
        1);
  }
}
