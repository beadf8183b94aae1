package dev.weft.examples.recipes;

import static dev.weft.dtensor.tp.Parallelize.parallelizeModule;
import static dev.weft.dtensor.tp.Styles.colwise;
import static dev.weft.dtensor.tp.Styles.rowwise;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.checkpoint.Checkpoint;
import dev.weft.nn.Function;
import dev.weft.nn.Linear;
import dev.weft.nn.Sequential;
import dev.weft.optim.AdamW;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Random;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** Saves on two ranks, and goes on on one, or on four, as if nothing had been. */
public final class ResumeElsewhere {
  private ResumeElsewhere() {}

  /** Trains six steps at once, and three on two ranks with three on others. */
  public static void main(String[] args) throws IOException {
    Path folder = Files.createTempDirectory("checkpoints");
    LocalWorld.run(2, rank -> train(rank, 2, folder.resolve("whole"), 6));
    LocalWorld.run(2, rank -> train(rank, 2, folder.resolve("parts"), 3));
    LocalWorld.run(4, rank -> train(rank, 4, folder.resolve("parts"), 6));
  }

  private static void train(int rank, int ranks, Path folder, int steps) {
    var mesh = initDeviceMesh("cpu", dim("tp", ranks));
    Generator generator = new Generator(1);
    var model =
        new Sequential(
            new Linear(8, 32, true, generator),
            new Function(Activations::gelu),
            new Linear(32, 8, true, generator));
    parallelizeModule(model, mesh, Map.of("0", colwise(), "2", rowwise()));
    var optimizer = AdamW.over(model.parameters()).learningRate(0.01).build();
    var last = Checkpoint.latest(folder);
    last.ifPresent(saved -> saved.load(model, optimizer)); // cut anew, as this mesh wants it
    double loss = Double.NaN;
    long first = last.map(Checkpoint::step).orElse(0L);
    for (long step = first; step < steps; step++) {
      try (var scope = TensorScope.open()) {
        Tensor x = Random.randn(new Generator(step), DType.FLOAT32, 16, 8);
        Tensor mean = Losses.mseLoss(model.call(x), x, "mean");
        mean.backward();
        optimizer.step();
        optimizer.zeroGrad();
        loss = mean.item();
      }
    }
    Checkpoint.save(folder, steps, model, optimizer, Map.of("loss", loss));
    if (rank == 0) {
      System.out.printf("%d ranks, steps %d to %d: loss %.5f%n", ranks, first, steps, loss);
    }
  }
}
