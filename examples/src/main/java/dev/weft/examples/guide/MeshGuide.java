package dev.weft.examples.guide;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.World;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Tensor;
import java.util.Arrays;

/** The programs of the chapter on meshes. */
final class MeshGuide {
  private MeshGuide() {}

  @Ranks(0)
  static void worlds() {
    // Eight ranks as threads of this JVM, in one debugger.
    LocalWorld.run(
        8,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 4));
          if (rank == 6) {
            System.out.println(mesh);
            System.out.println("rank 6 is at " + Arrays.toString(mesh.getCoordinate()));
          }
        });
    // A process of its own, alone: a world of one, in which the same program runs.
    try (World world = Distributed.init()) {
      DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 1), dim("tp", 1));
      System.out.println("alone: " + mesh.size() + " rank");
    }
  }

  @Ranks(8)
  static void parts() {
    DeviceMesh mesh = initDeviceMesh("cpu", dim("pp", 2), dim("dp", 2), dim("tp", 2));
    DeviceMesh tp = mesh.get("tp"); // the row of ranks that this rank shares its layers with
    DeviceMesh swapped = mesh.get("tp", "dp"); // any order
    DeviceMesh all = mesh.get("dp", "tp").flatten("dp_tp"); // one dimension over both
    if (Distributed.rank() == 5) {
      System.out.println("tp: " + Arrays.toString(tp.ranks()));
      System.out.println("tp, dp: " + Arrays.toString(swapped.ranks()));
      System.out.println("dp_tp: " + Arrays.toString(all.ranks()));
      System.out.println("index in tp: " + mesh.getLocalRank("tp"));
    }
  }

  @Ranks(4)
  static void groups() {
    DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 2));
    Tensor sum = Tensor.of(new float[] {Distributed.rank()});
    mesh.getGroup("dp").allReduce(sum, ReduceOp.SUM); // over ranks 0 and 2, or 1 and 3
    if (Distributed.rank() == 1) {
      System.out.println(sum);
    }
  }
}
