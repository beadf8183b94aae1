package dev.weft.bench;

import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.tp.Styles.colwise;
import static dev.weft.dtensor.tp.Styles.prepareInput;
import static dev.weft.dtensor.tp.Styles.rowwise;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.profiler.Schedule.once;

import dev.weft.bench.TrainGptBenchmark.Precision;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.dtensor.tp.ParallelStyle;
import dev.weft.dtensor.tp.Parallelize;
import dev.weft.examples.reference.Gpt;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Autocast;
import dev.weft.nn.Module;
import dev.weft.optim.AdamW;
import dev.weft.optim.Clipping;
import dev.weft.parallel.Ddp;
import dev.weft.parallel.FullySharded;
import dev.weft.parallel.FullyShardedPolicy;
import dev.weft.parallel.GradientSync;
import dev.weft.parallel.pipeline.Pipeline;
import dev.weft.parallel.pipeline.Schedule;
import dev.weft.parallel.pipeline.Stages;
import dev.weft.profiler.Profiler;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.cuda.CudaMath;
import dev.weft.tensor.cuda.CudaMemory;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Views;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Training throughput of the same GPT as {@link TrainGptBenchmark} on a mesh of data-, pipeline-
 * and tensor-parallel ranks: forward, backward, clipping to norm 1, AdamW. Runs on the calling rank
 * of a world of as many ranks.
 */
public final class ParallelGptBenchmark {
  private static final double CLIP = 1;
  private static final int TRACED = 3;

  private final Rows rows;
  private final TrainGptBenchmark.Options options;
  private final Layout layout;
  private final DeviceMesh mesh;
  private final Device device;
  private final @Nullable Path traces;

  /**
   * How ranks share the work.
   *
   * @param dp ranks with other rows
   * @param pp pipeline stages
   * @param tp ranks that share each layer
   * @param sharded whether data-parallel ranks share parameters and optimiser state, too
   * @param microbatches a step, where there are stages; they divide a rank's rows
   */
  public record Layout(int dp, int pp, int tp, boolean sharded, int microbatches) {
    /** All ranks. */
    public int ranks() {
      return dp * pp * tp;
    }
  }

  /**
   * A benchmark on the calling rank; {@code options.batch()} rows for each data-parallel rank.
   *
   * @param traces where each rank writes a trace of {@value #TRACED} steps after those that count;
   *     null for none
   */
  public ParallelGptBenchmark(
      Rows rows, TrainGptBenchmark.Options options, Layout layout, @Nullable Path traces) {
    this.rows = rows;
    this.options = options;
    this.layout = layout;
    this.traces = traces;
    this.mesh =
        initDeviceMesh(
            options.device(), dim("dp", layout.dp), dim("pp", layout.pp), dim("tp", layout.tp));
    this.device = options.device().equals("cuda") ? Device.cuda(Cuda.currentDevice()) : Device.CPU;
  }

  private static Map<String, ParallelStyle> plan(Module part) {
    Map<String, ParallelStyle> plan = new LinkedHashMap<>();
    plan.put("tok_emb", rowwise());
    // One tensor for all layers that read it: their gradients are added before they are reduced.
    plan.put("layers.*.attn", prepareInput(replicate(), replicate()));
    plan.put("layers.*.ffn", prepareInput(replicate(), replicate()));
    plan.put("layers.*.attn.w[qkv]", colwise());
    plan.put("layers.*.attn.wo", rowwise());
    plan.put("layers.*.ffn.w[13]", colwise());
    plan.put("layers.*.ffn.w2", rowwise());
    plan.put("output", colwise().output(replicate()));
    plan.keySet().removeIf(p -> !p.contains("*") && !part.children().containsKey(p));
    return plan;
  }

  /**
   * Trains and prints tokens a second over all ranks, and this rank's peak memory.
   *
   * @return the losses of all steps, on ranks that know them; else zeros
   */
  public double[] run(Precision precision) {
    boolean tf32 = CudaMath.isTf32Allowed();
    if (!layout.sharded || precision != Precision.bf16) {
      CudaMath.allowTf32(precision == Precision.tf32);
    }
    try {
      return train(precision);
    } finally {
      CudaMath.allowTf32(tf32);
    }
  }

  private @Nullable GradientSync share(Module stage, Precision precision) {
    if (layout.dp == 1) {
      return null;
    }
    if (!layout.sharded) {
      return Ddp.of(stage, mesh.get("dp"));
    }
    FullyShardedPolicy policy = FullyShardedPolicy.DEFAULT;
    if (precision == Precision.bf16) {
      policy = policy.withMixedPrecision(DType.BFLOAT16, DType.FLOAT32);
    }
    for (Module block : stage.module("layers").children().values()) {
      FullySharded unused = FullySharded.fullyShard(block, mesh.get("dp"), policy);
    }
    return FullySharded.fullyShard(stage, mesh.get("dp"), policy.withReshardAfterForward(false));
  }

  private Module stage() {
    Gpt whole = new Gpt(TrainGptBenchmark.config(options));
    Module stage = whole;
    if (layout.pp > 1) {
      List<String> cuts =
          java.util.stream.IntStream.range(1, layout.pp)
              .mapToObj(i -> "layers." + options.layers() * i / layout.pp)
              .toList();
      stage =
          Stages.split(whole, List.of("tok_emb", "layers.*", "norm", "output"), cuts)
              .get(mesh.coordinate(1));
    }
    Module moved = stage.to(device);
    return layout.tp > 1
        ? Parallelize.parallelizeModule(moved, mesh.get("tp"), plan(moved))
        : moved;
  }

  private double[] train(Precision precision) {
    Module stage = stage();
    GradientSync sync = share(stage, precision);
    boolean casts = precision == Precision.bf16 && !(layout.sharded && layout.dp > 1);
    Module called = casts ? new Cast(stage) : stage;
    Pipeline pipeline = null;
    if (layout.pp > 1) {
      pipeline =
          Pipeline.of(
              mesh.get("pp"),
              List.of(called),
              Schedule.ONE_F_ONE_B,
              layout.microbatches,
              this::loss);
      if (sync != null) {
        pipeline = pipeline.withSync(0, sync);
      }
    }
    int rowsHere = options.batch();
    long[] text = TrainGptBenchmark.text(options, rowsHere * (options.seq() + 1));
    Tensor all = Tensor.of(text, rowsHere, options.seq() + 1).to(device);
    Tensor x = all.slice(1, 0, options.seq()).contiguous();
    Tensor y = all.slice(1, 1, options.seq() + 1).contiguous();
    if (device.isCuda()) {
      CudaMemory.resetPeak(device.index());
    }
    int total = options.warmup() + options.steps();
    double[] losses = new double[traces == null ? total : total + 1 + TRACED];
    double[] seconds = new double[options.steps()];
    double[] host = new double[options.steps()];
    try (AdamW optimizer =
            AdamW.over(stage.parameters())
                .learningRate(3e-4)
                .betas(0.9, 0.95)
                .eps(1e-8)
                .weightDecay(0.1)
                .decayOnly(p -> p.ndim() > 1)
                .build();
        @Nullable Profiler profiler =
            traces == null ? null : Profiler.start(traces, once(total, 1, TRACED))) {
      for (int step = 0; step < losses.length; step++) {
        synchronize();
        long start = System.nanoTime();
        try (TensorScope scope = TensorScope.open()) {
          @Nullable Tensor loss;
          if (pipeline == null) {
            loss = loss(called.call(x), y);
            loss.backward();
          } else {
            loss = pipeline.step(x, y);
          }
          clip(stage);
          optimizer.step();
          optimizer.zeroGrad();
          long launched = System.nanoTime();
          synchronize();
          if (step >= options.warmup() && step < total) {
            seconds[step - options.warmup()] = (System.nanoTime() - start) * 1e-9;
            host[step - options.warmup()] = (launched - start) * 1e-9;
          }
          losses[step] = loss == null ? 0 : loss.item();
        }
        if (profiler != null) {
          profiler.step();
        }
      }
    }
    report(precision, seconds, host, losses[total - 1]);
    return losses;
  }

  /** Runs the stage with products in bfloat16. */
  private static final class Cast extends Module {
    private final Module inner;

    Cast(Module inner) {
      this.inner = registerModule("inner", inner);
    }

    @Override
    protected Tensor forward(Tensor... inputs) {
      try (Autocast cast = Autocast.to(DType.BFLOAT16)) {
        return inner.call(inputs);
      }
    }
  }

  private Tensor loss(Tensor logits, Tensor targets) {
    return Losses.crossEntropy(
        Views.reshape(logits.to(DType.FLOAT32), -1, options.vocab()), Views.reshape(targets, -1));
  }

  private void clip(Module stage) {
    if (layout.pp == 1) {
      double unused = Clipping.clipGradNorm(stage.parameters(), CLIP);
      return;
    }
    double own = Clipping.gradNorm(stage.parameters());
    ProcessGroup group = mesh.getGroup("pp");
    Tensor sum = Tensor.of(new float[] {(float) (own * own)}, 1).to(device);
    group.allReduce(sum, ReduceOp.SUM).await();
    float scale = (float) Math.min(1, CLIP / (Math.sqrt(sum.item()) + 1e-6));
    Autograd.noGrad(
        () -> {
          for (Tensor p : stage.parameters()) {
            Tensor gradient = p.grad();
            if (gradient != null) {
              InPlace.mul(gradient, scale);
            }
          }
        });
  }

  private void synchronize() {
    if (device.isCuda()) {
      Cuda.synchronize(device.index());
    }
  }

  private void report(Precision precision, double[] seconds, double[] host, double loss) {
    double median = TrainGptBenchmark.median(seconds);
    Object[] params = {
      "precision", precision.name(),
      "dp", layout.dp,
      "pp", layout.pp,
      "tp", layout.tp,
      "sharded", layout.sharded,
      "batch", options.batch(),
      "d_model", options.dModel(),
      "layers", options.layers(),
      "seq", options.seq(),
      "device", device.type()
    };
    double tokens = (double) options.batch() * options.seq() * layout.dp;
    rows.addValue("train_gpt_parallel", tokens / median, "tokens/s", params);
    rows.addValue("train_gpt_parallel_step", median * 1e3, "ms", params);
    rows.addValue("train_gpt_parallel_host", TrainGptBenchmark.median(host) * 1e3, "ms", params);
    rows.addValue("train_gpt_parallel_loss_last", loss, "nats", params);
    if (device.isCuda()) {
      CudaMemory.Stats s = CudaMemory.stats(device.index());
      rows.addValue(
          "train_gpt_parallel_peak_memory",
          s.peakAllocatedBytes() / (double) (1 << 20),
          "MiB",
          params);
    }
  }
}
