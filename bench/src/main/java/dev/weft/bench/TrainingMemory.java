package dev.weft.bench;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.DeferredInit;
import dev.weft.nn.Function;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.nn.Sequential;
import dev.weft.optim.AdamW;
import dev.weft.optim.Clipping;
import dev.weft.parallel.Ddp;
import dev.weft.parallel.FullySharded;
import dev.weft.parallel.FullyShardedPolicy;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.memory.MemoryAccount;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Random;
import dev.weft.tensor.op.Reductions;
import java.util.List;

/**
 * The peak of a rank's memory in training steps, next to the formula: a chain of equal blocks, one
 * row a rank (so that activations are next to nothing), Adam, float32. Counted are the tensors that
 * the rank's thread makes, which is all but the transports' own buffers.
 */
public final class TrainingMemory {
  private static final int BLOCKS = 8;
  private static final int WIDTH = 256;
  private static final int STEPS = 3;
  // Of one block and of all, in bytes.
  private static final double BLOCK = 4.0 * (2L * WIDTH * 4 * WIDTH + 5L * WIDTH);
  private static final double ALL = BLOCKS * BLOCK;

  private final Rows rows;

  /** A way of training. */
  public enum Layout {
    /** Whole replicas. */
    DDP,
    /** Sharded, the next module gathered ahead. */
    SHARDED,
    /** Sharded, nothing gathered ahead. */
    SHARDED_NO_PREFETCH,
    /** Sharded, with whole parameters and gradients in bfloat16, reduced in float32. */
    SHARDED_BFLOAT16,
    /** Two replicas of what is sharded over the other dimension. */
    REPLICATED_SHARDS
  }

  /** Prints to {@code rows}. */
  public TrainingMemory(Rows rows) {
    this.rows = rows;
  }

  /** Measures all layouts over 1 to 8 ranks. */
  public void run() {
    for (Layout layout : Layout.values()) {
      for (int ranks = layout == Layout.REPLICATED_SHARDS ? 2 : 1; ranks <= 8; ranks *= 2) {
        double unused = measure(layout, ranks);
      }
    }
  }

  /**
   * What a rank should need, in bytes. Parameters, gradients and two moments of the optimiser, cut
   * over the ranks; and of blocks: the one that computes, its gradients, one that is gathered ahead
   * (the messages of a gather are a whole and a part) and one whose gradients are being reduced
   * (likewise).
   */
  public static double formula(Layout layout, int ranks) {
    int n = layout == Layout.REPLICATED_SHARDS ? ranks / 2 : ranks;
    double message = BLOCK + BLOCK / n;
    return switch (layout) {
      // All gradients once more, in the buckets.
      case DDP -> 4 * ALL + ALL;
      case SHARDED, REPLICATED_SHARDS -> 4 * ALL / n + 2 * BLOCK + 2 * message;
      case SHARDED_NO_PREFETCH -> 4 * ALL / n + 2 * BLOCK + message;
      case SHARDED_BFLOAT16 -> 4 * ALL / n + 2 * BLOCK / 2 + message / 2 + message;
    };
  }

  /**
   * Measures one layout.
   *
   * @return the largest peak of all ranks, in bytes
   */
  public double measure(Layout layout, int ranks) {
    double peak =
        LocalWorld.call(ranks, rank -> train(layout, ranks)).stream()
            .mapToLong(Long::longValue)
            .max()
            .orElseThrow();
    add(layout, ranks, "formula", formula(layout, ranks));
    add(layout, ranks, "measured", peak);
    return peak;
  }

  private void add(Layout layout, int ranks, String source, double bytes) {
    rows.addValue(
        "training_memory",
        bytes / (1 << 20),
        "MiB",
        "layout",
        layout.name(),
        "ranks",
        ranks,
        "parameters_mib",
        Math.round(ALL / (1 << 20) * 10) / 10.0,
        "source",
        source);
  }

  private static Sequential model() {
    Generator generator = new Generator(1);
    Module[] blocks = new Module[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
      blocks[i] =
          new Sequential(
              new Linear(WIDTH, 4 * WIDTH, true, generator),
              new Function(Activations::tanh),
              new Linear(4 * WIDTH, WIDTH, true, generator));
    }
    return new Sequential(blocks);
  }

  private static long train(Layout layout, int ranks) {
    DeviceMesh mesh =
        layout == Layout.REPLICATED_SHARDS
            ? initDeviceMesh("cpu", dim("replicate", 2), dim("shard", ranks / 2))
            : initDeviceMesh("cpu", dim("dp", ranks));
    try (MemoryAccount account = MemoryAccount.open()) {
      Sequential model = layout == Layout.DDP ? model() : sharded(layout, mesh);
      if (layout == Layout.DDP) {
        Ddp unused = Ddp.of(model, mesh);
      }
      try (AdamW optimizer = AdamW.over(model.parameters()).learningRate(1e-3).build()) {
        for (int step = 0; step < STEPS; step++) {
          try (TensorScope scope = TensorScope.open()) {
            Tensor x = Random.randn(new Generator(step), DType.FLOAT32, 1, WIDTH);
            Tensor y = model.call(x);
            Reductions.mean(Pointwise.mul(y, y)).backward();
            double unused = Clipping.clipGradNorm(model.parameters(), 1);
            optimizer.step();
            optimizer.zeroGrad();
          }
        }
      }
      Distributed.barrier().await();
      return account.peakBytes();
    }
  }

  private static Sequential sharded(Layout layout, DeviceMesh mesh) {
    FullyShardedPolicy policy =
        FullyShardedPolicy.DEFAULT.withPrefetch(layout != Layout.SHARDED_NO_PREFETCH);
    if (layout == Layout.SHARDED_BFLOAT16) {
      policy =
          policy.withMixedPrecision(DType.BFLOAT16, DType.FLOAT32).withOutputDtype(DType.FLOAT32);
    }
    Sequential model;
    try (DeferredInit deferred = DeferredInit.open()) {
      model = model();
    }
    for (Module block : List.copyOf(model.children().values())) {
      FullySharded unused = FullySharded.fullyShard(block, mesh, policy);
    }
    FullySharded unused = FullySharded.fullyShard(model, mesh, policy);
    return model;
  }
}
