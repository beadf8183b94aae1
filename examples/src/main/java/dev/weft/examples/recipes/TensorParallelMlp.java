package dev.weft.examples.recipes;

import static dev.weft.dtensor.tp.Parallelize.parallelizeModule;
import static dev.weft.dtensor.tp.Styles.colwise;
import static dev.weft.dtensor.tp.Styles.rowwise;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.LocalWorld;
import dev.weft.nn.Function;
import dev.weft.nn.Linear;
import dev.weft.nn.Sequential;
import dev.weft.profiler.CommDebug;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Random;
import java.util.Map;

/** Two layers over two ranks, as Megatron-LM cuts them: one all-reduce forward, one backward. */
public final class TensorParallelMlp {
  private TensorParallelMlp() {}

  /** Runs it on two threads. */
  public static void main(String[] args) {
    LocalWorld.run(2, TensorParallelMlp::train);
  }

  private static Sequential mlp() {
    Generator generator = new Generator(1);
    return new Sequential(
        new Linear(8, 32, true, generator),
        new Function(Activations::gelu),
        new Linear(32, 8, true, generator));
  }

  private static void train(int rank) {
    var mesh = initDeviceMesh("cpu", dim("tp", 2));
    var whole = mlp();
    var cut = parallelizeModule(mlp(), mesh, Map.of("0", colwise(), "2", rowwise()));
    Tensor x = Random.randn(new Generator(2), DType.FLOAT32, 4, 8); // the same on both ranks
    x.requiresGrad(true);
    Tensor expected = Losses.mseLoss(whole.call(x), x, "mean");
    try (CommDebug comm = CommDebug.of(cut)) {
      Tensor loss = Losses.mseLoss(cut.call(x), x, "mean");
      loss.backward();
      if (rank == 0) {
        System.out.printf("loss %.5f, on one rank %.5f%n", loss.item(), expected.item());
        System.out.println(cut.parameter("0.weight").describe());
        System.out.println(comm.counts());
      }
    }
  }
}
