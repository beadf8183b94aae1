package dev.weft.examples.recipes;

import static dev.weft.dtensor.DTensor.distributeTensor;
import static dev.weft.dtensor.Placements.shard;
import static dev.weft.dtensor.tp.Parallelize.parallelizeModule;
import static dev.weft.dtensor.tp.Styles.colwise;
import static dev.weft.dtensor.tp.Styles.rowwise;
import static dev.weft.dtensor.tp.Styles.sequence;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.DTensor;
import dev.weft.nn.Function;
import dev.weft.nn.Linear;
import dev.weft.nn.RmsNorm;
import dev.weft.nn.Sequential;
import dev.weft.profiler.CommDebug;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Random;
import java.util.Map;

/** Between the cut layers each rank has only some positions: norms cost a share, too. */
public final class SequenceParallel {
  private SequenceParallel() {}

  /** Runs it on two threads. */
  public static void main(String[] args) {
    LocalWorld.run(2, SequenceParallel::forward);
  }

  private static void forward(int rank) {
    var mesh = initDeviceMesh("cpu", dim("tp", 2));
    Generator generator = new Generator(1);
    var block =
        new Sequential(
            new RmsNorm(8, 1e-6),
            new Linear(8, 32, false, generator),
            new Function(Activations::silu),
            new Linear(32, 8, false, generator));
    Tensor x = Random.randn(new Generator(2), DType.FLOAT32, 2, 6, 8); // batch, positions, width
    Tensor expected = block.call(x);
    parallelizeModule(
        block,
        mesh,
        Map.of(
            "0", sequence(), // on the positions that the rank has
            "1", colwise().input(shard(1)), // gathers positions
            "3", rowwise().output(shard(1)).localOutput(false))); // scatters sums over positions
    try (CommDebug comm = CommDebug.of(block)) {
      DTensor y = (DTensor) block.call(distributeTensor(x, mesh, shard(1)));
      double error = y.fullTensor().sub(expected).pow(2).max().item();
      if (rank == 0) {
        System.out.println(y.placements() + ": " + y.toLocal().describe());
        System.out.println("as on one rank: " + (error < 1e-10));
        System.out.print(comm);
      }
    }
  }
}
