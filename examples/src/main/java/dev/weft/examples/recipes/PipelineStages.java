package dev.weft.examples.recipes;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.LocalWorld;
import dev.weft.nn.Function;
import dev.weft.nn.Linear;
import dev.weft.nn.Sequential;
import dev.weft.optim.AdamW;
import dev.weft.parallel.pipeline.Pipeline;
import dev.weft.parallel.pipeline.Schedule;
import dev.weft.parallel.pipeline.Stages;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Random;
import java.util.List;

/** A model cut into stages, a rank each, that work on several microbatches at a time. */
public final class PipelineStages {
  private PipelineStages() {}

  /** Runs it on two threads. */
  public static void main(String[] args) {
    LocalWorld.run(2, PipelineStages::train);
    System.out.print(Schedule.ONE_F_ONE_B.timeline(2, 1, 4)); // who did what, and when
  }

  private static void train(int rank) {
    var mesh = initDeviceMesh("cpu", dim("pp", 2));
    Generator generator = new Generator(1);
    var whole =
        new Sequential(
            new Linear(8, 32, true, generator),
            new Function(Activations::gelu),
            new Linear(32, 32, true, generator),
            new Function(Activations::gelu),
            new Linear(32, 8, true, generator));
    // The second stage begins with layer 2.
    var stage = Stages.split(whole, List.of("0", "1", "2", "3", "4"), List.of("2")).get(rank);
    var pipeline =
        Pipeline.of(
            mesh,
            List.of(stage),
            Schedule.ONE_F_ONE_B,
            4,
            (output, target) -> Losses.mseLoss(output, target, "mean"));
    var optimizer = AdamW.over(stage.parameters()).learningRate(0.01).build();
    for (int step = 0; step < 3; step++) {
      try (var scope = TensorScope.open()) {
        Tensor x = Random.randn(new Generator(step), DType.FLOAT32, 16, 8);
        Tensor loss = pipeline.step(x, x); // four microbatches of four rows
        optimizer.step();
        optimizer.zeroGrad();
        if (loss != null) { // the last stage has it
          System.out.printf("rank %d, step %d: loss %.4f%n", rank, step, loss.item());
        }
      }
    }
  }
}
