package dev.weft.examples.guide;

import static dev.weft.dtensor.DTensor.distributeTensor;
import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;
import static dev.weft.funcol.FunctionalCollectives.allReduce;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.Distributed;
import dev.weft.dtensor.DTensor;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Random;

/** The program of {@code docs/guide/concepts.md}. */
final class ConceptsGuide {
  private ConceptsGuide() {}

  @Ranks(4)
  static void tour() {
    int rank = Distributed.rank(); // 0 to 3: this program runs four times at once
    var mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 2));
    var tp = mesh.get("tp"); // of the four, the two in this rank's row

    try (var scope = TensorScope.open()) { // memory made below ends here
      Tensor whole = Random.randn(new Generator(1), DType.FLOAT32, 8, 6);
      DTensor weight = distributeTensor(whole, tp, shard(1)); // three columns on each
      weight.requiresGrad(true);
      DTensor x = distributeTensor(Tensor.of(new float[2 * 6], 2, 6), tp, replicate());

      DTensor y = (DTensor) x.matmul(weight.t()); // each rank has summands of y
      DTensor settled = y.redistribute(replicate()); // and now the sum: an all-reduce, under way
      settled.sum().backward(); // reads it, so waits for it

      Tensor mine = Tensor.of(new float[] {rank}, 1);
      Tensor sum = allReduce(mine, "sum", mesh.getGroup("dp")); // the same, by hand
      if (rank == 1) {
        System.out.println(mesh + ", rank 1 at " + mesh.coordinate(0) + ", " + mesh.coordinate(1));
        System.out.println("weight   " + weight.placements() + " " + weight.toLocal().describe());
        System.out.println("y        " + y.placements());
        System.out.println("settled  " + settled.placements());
        System.out.println("sum of ranks 1 and 3: " + sum.item());
      }
    }
  }
}
