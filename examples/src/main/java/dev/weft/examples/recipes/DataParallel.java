package dev.weft.examples.recipes;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.World;
import dev.weft.nn.Linear;
import dev.weft.optim.AdamW;
import dev.weft.parallel.Ddp;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Random;

/** One program for one process and for many: each rank takes its rows of every batch. */
public final class DataParallel {
  private DataParallel() {}

  /** Runs it: alone, on four threads, or as a rank that {@code weft run} has started. */
  public static void main(String[] args) {
    try (World world = Distributed.init()) { // alone: a world of one
      train();
    }
    if (!System.getenv().containsKey("RANK")) {
      LocalWorld.run(4, rank -> train());
    }
  }

  private static void train() {
    var mesh = initDeviceMesh("cpu", dim("dp", Distributed.worldSize()));
    var model = Ddp.of(new Linear(4, 1, true, new Generator(1)), mesh);
    var optimizer = AdamW.over(model.model().parameters()).learningRate(0.05).build();
    int rows = 16 / mesh.size();
    int first = mesh.getLocalRank() * rows;
    for (int step = 0; step < 30; step++) {
      try (var scope = TensorScope.open()) { // what the step makes ends with it
        Tensor x = Random.randn(new Generator(step), DType.FLOAT32, 16, 4);
        Tensor mine = x.slice(0, first, first + rows);
        Tensor loss = Losses.mseLoss(model.call(mine), mine.sum(1).unsqueeze(1), "mean");
        loss.backward(); // gradients are averaged over the ranks meanwhile
        optimizer.step();
        optimizer.zeroGrad();
        Tensor mean = loss.detach();
        Distributed.allReduce(mean, ReduceOp.AVG).await();
        if (step % 10 == 9 && Distributed.rank() == 0) {
          System.out.printf("%d ranks, step %d: loss %.4f%n", mesh.size(), step, mean.item());
        }
      }
    }
  }
}
