package dev.weft.examples.recipes;

import static dev.weft.dtensor.tp.Parallelize.parallelizeModule;
import static dev.weft.dtensor.tp.Styles.colwise;
import static dev.weft.dtensor.tp.Styles.rowwise;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ReduceOp;
import dev.weft.nn.Function;
import dev.weft.nn.Linear;
import dev.weft.nn.Sequential;
import dev.weft.optim.AdamW;
import dev.weft.optim.Clipping;
import dev.weft.parallel.Ddp;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Random;
import java.util.Map;

/** Two dimensions of a mesh: layers are cut along one, batches along the other. */
public final class TensorAndDataParallel {
  private TensorAndDataParallel() {}

  /** Runs it on meshes of one and of four threads: the same losses. */
  public static void main(String[] args) {
    LocalWorld.run(1, rank -> train(1, 1));
    LocalWorld.run(4, rank -> train(2, 2));
  }

  private static void train(int dp, int tp) {
    var mesh = initDeviceMesh("cpu", dim("dp", dp), dim("tp", tp));
    Generator generator = new Generator(1);
    var mlp =
        new Sequential(
            new Linear(8, 32, true, generator),
            new Function(Activations::gelu),
            new Linear(32, 8, true, generator));
    parallelizeModule(mlp, mesh.get("tp"), Map.of("0", colwise(), "2", rowwise()));
    var model = Ddp.of(mlp, mesh.get("dp"));
    var optimizer = AdamW.over(mlp.parameters()).learningRate(0.01).build();
    int rows = 16 / dp;
    int first = mesh.coordinate(0) * rows; // the ranks of a tp group take the same rows
    for (int step = 0; step < 3; step++) {
      try (var scope = TensorScope.open()) {
        Tensor batch = Random.randn(new Generator(step), DType.FLOAT32, 16, 8);
        Tensor x = batch.slice(0, first, first + rows);
        Tensor loss = Losses.mseLoss(model.call(x), x, "mean");
        loss.backward();
        double norm = Clipping.clipGradNorm(mlp.parameters(), 1.0);
        optimizer.step();
        optimizer.zeroGrad();
        Tensor mean = loss.detach();
        mesh.getGroup("dp").allReduce(mean, ReduceOp.AVG).await();
        if (Distributed.rank() == 0) {
          System.out.printf("%dx%d loss %.4f, norm %.4f%n", dp, tp, mean.item(), norm);
        }
      }
    }
  }
}
