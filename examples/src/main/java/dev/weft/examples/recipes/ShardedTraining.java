package dev.weft.examples.recipes;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.parallel.FullySharded.fullyShard;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.DTensor;
import dev.weft.nn.DeferredInit;
import dev.weft.nn.Function;
import dev.weft.nn.Linear;
import dev.weft.nn.Sequential;
import dev.weft.optim.AdamW;
import dev.weft.optim.Clipping;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Random;

/** A model that no rank holds whole: parameters, gradients and optimiser state in shards. */
public final class ShardedTraining {
  private ShardedTraining() {}

  /** Runs it on four threads. */
  public static void main(String[] args) {
    LocalWorld.run(4, ShardedTraining::train);
  }

  private static Sequential block(long seed) {
    Generator generator = new Generator(seed);
    return new Sequential(
        new Linear(16, 64, true, generator),
        new Function(Activations::gelu),
        new Linear(64, 16, true, generator));
  }

  private static void train(int rank) {
    var mesh = initDeviceMesh("cpu", dim("fsdp", 4));
    Sequential model;
    try (var open = DeferredInit.open()) { // shapes now, memory when it is known what is kept
      model = new Sequential(block(1), block(2));
    }
    for (var block : model.children().values()) {
      fullyShard(block, mesh); // gathered together, and let go together
    }
    fullyShard(model, mesh);
    var optimizer = AdamW.over(model.parameters()).learningRate(0.01).build();
    for (int step = 0; step < 3; step++) {
      try (var scope = TensorScope.open()) {
        Tensor x = Random.randn(new Generator(10L * step + rank), DType.FLOAT32, 8, 16);
        Losses.mseLoss(model.call(x), x, "mean").backward();
        double norm = Clipping.clipGradNorm(model.parameters(), 1.0); // over all shards
        optimizer.step();
        optimizer.zeroGrad();
        if (rank == 0) {
          System.out.printf("step %d: gradient norm %.4f%n", step, norm);
        }
      }
    }
    if (rank == 0) {
      var weight = (DTensor) model.parameter("0.0.weight");
      System.out.println(weight.placements() + ": " + weight.toLocal().describe());
    }
  }
}
