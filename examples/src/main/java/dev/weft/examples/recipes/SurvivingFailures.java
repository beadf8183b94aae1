package dev.weft.examples.recipes;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.checkpoint.Checkpoint;
import dev.weft.nn.Linear;
import dev.weft.optim.AdamW;
import dev.weft.parallel.Ddp;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Random;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** Loses a rank, and goes on from the last checkpoint with those that are left. */
public final class SurvivingFailures {
  private SurvivingFailures() {}

  /** Runs it: this loop is what {@code weft run --max-restarts} does for processes. */
  public static void main(String[] args) throws IOException {
    Path folder = Files.createTempDirectory("checkpoints");
    for (int ranks = 3; ranks > 0; ranks--) {
      try {
        LocalWorld.run(ranks, rank -> train(folder));
        return;
      } catch (IllegalStateException e) { // the first cause, not what the others saw of it
        System.out.println("failed: " + e.getMessage());
      }
    }
  }

  private static void train(Path folder) {
    int ranks = Distributed.worldSize();
    var mesh = initDeviceMesh("cpu", dim("dp", ranks));
    var model = new Linear(4, 1, true, new Generator(1));
    var optimizer = AdamW.over(model.parameters()).learningRate(0.05).build();
    var last = Checkpoint.latest(folder);
    last.ifPresent(saved -> saved.load(model, optimizer));
    var ddp = Ddp.of(model, mesh);
    int rows = 12 / ranks;
    int from = mesh.getLocalRank() * rows; // the whole batch over whatever ranks there are
    for (long step = last.map(Checkpoint::step).orElse(0L); step < 30; step++) {
      if (step == 17 && ranks == 3 && mesh.getLocalRank() == 1) {
        throw new IllegalStateException("rank 1 ran into a wall in step 17");
      }
      try (var scope = TensorScope.open()) {
        Tensor x =
            Random.randn(new Generator(step), DType.FLOAT32, 12, 4).slice(0, from, from + rows);
        Losses.mseLoss(ddp.call(x), x.sum(1).unsqueeze(1), "mean").backward();
        optimizer.step();
        optimizer.zeroGrad();
      }
      if (step % 10 == 9) {
        Checkpoint.save(folder, step + 1, model, optimizer, Map.of());
        if (mesh.getLocalRank() == 0) {
          System.out.printf("%d ranks, saved after step %d%n", ranks, step);
        }
      }
    }
  }
}
