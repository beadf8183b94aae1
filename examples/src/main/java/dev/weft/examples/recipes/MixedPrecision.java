package dev.weft.examples.recipes;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.parallel.FullySharded.fullyShard;

import dev.weft.c10d.LocalWorld;
import dev.weft.nn.Autocast;
import dev.weft.nn.Function;
import dev.weft.nn.Linear;
import dev.weft.nn.Sequential;
import dev.weft.optim.AdamW;
import dev.weft.optim.Clipping;
import dev.weft.parallel.Ddp;
import dev.weft.parallel.FullyShardedPolicy;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Random;

/** Computes in bfloat16, keeps parameters and sums in float32, and clips by the global norm. */
public final class MixedPrecision {
  private MixedPrecision() {}

  /** Runs both ways on two threads. */
  public static void main(String[] args) {
    LocalWorld.run(2, rank -> train(rank, false));
    LocalWorld.run(2, rank -> train(rank, true));
  }

  private static void train(int rank, boolean sharded) {
    var mesh = initDeviceMesh("cpu", dim("dp", 2));
    Generator generator = new Generator(1);
    var model =
        new Sequential(
            new Linear(8, 32, true, generator),
            new Function(Activations::gelu),
            new Linear(32, 8, true, generator));
    if (sharded) { // gathers in bfloat16, reduces gradients in float32
      var policy = FullyShardedPolicy.DEFAULT.withMixedPrecision(DType.BFLOAT16, DType.FLOAT32);
      fullyShard(model, mesh, policy.withOutputDtype(DType.FLOAT32));
    }
    Ddp ddp = sharded ? null : Ddp.of(model, mesh);
    var optimizer = AdamW.over(model.parameters()).learningRate(0.01).build();
    for (int step = 0; step < 2; step++) {
      try (var scope = TensorScope.open()) {
        Tensor x = Random.randn(new Generator(10L * step + rank), DType.FLOAT32, 8, 8);
        Tensor loss;
        if (ddp == null) {
          loss = Losses.mseLoss(model.call(x), x, "mean");
        } else {
          try (var autocast = Autocast.to(DType.BFLOAT16)) { // products in bfloat16, losses not
            loss = Losses.mseLoss(ddp.call(x), x, "mean");
          }
        }
        loss.backward();
        double norm = Clipping.clipGradNorm(model.parameters(), 0.1);
        double after = Clipping.gradNorm(model.parameters());
        optimizer.step();
        optimizer.zeroGrad();
        if (rank == 0) {
          String how = sharded ? "sharded" : "autocast";
          System.out.printf("%s: %s, norm %.2f -> %.2f%n", how, loss.dtype(), norm, after);
        }
      }
    }
  }
}
