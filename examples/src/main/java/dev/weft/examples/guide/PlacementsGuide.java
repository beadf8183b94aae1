package dev.weft.examples.guide;

import static dev.weft.dtensor.DTensor.distributeTensor;
import static dev.weft.dtensor.Placements.partial;
import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.Distributed;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.DTensorFactories;
import dev.weft.dtensor.Gradients;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Random;
import java.util.Arrays;
import java.util.List;

/** The programs of the chapter on placements. */
final class PlacementsGuide {
  private PlacementsGuide() {}

  @Ranks(4)
  static void placing() {
    var mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 2));
    Tensor whole = Creation.arange(0, 20, DType.FLOAT32).reshape(5, 4);
    DTensor x = distributeTensor(whole, mesh, shard(0), shard(1));
    if (Distributed.rank() == 0) {
      System.out.println(x.visualizeSharding());
      System.out.println(x);
      System.out.println("this part starts at " + Arrays.toString(x.spec().globalOffset()));
    }
  }

  @Ranks(4)
  static void moving() {
    var mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 2));
    DTensor x = DTensorFactories.ones(mesh, List.of(shard(0), shard(1)), DType.FLOAT32, 8, 8);
    DTensor y = x.redistribute(replicate(), shard(0)); // returns at once; the first reader waits
    if (Distributed.rank() == 0) {
      System.out.println(x.explain(replicate(), shard(0)).explain());
      System.out.println(y.placements() + ": " + Arrays.toString(y.toLocal().shape()));
    }
  }

  @Ranks(2)
  static void outstanding() {
    var mesh = initDeviceMesh("cpu", 2);
    DTensor x = DTensorFactories.arange(0, 10, 1, mesh, List.of(shard(0)), DType.FLOAT32);
    DTensor sum = (DTensor) x.sum(); // each rank has summed its part
    Tensor more = sum.add(10); // 10 is added once
    DTensor own = DTensor.fromLocal(Tensor.of(new float[] {1, 2}), mesh, partial());
    Tensor settled = own.fullTensor();
    double item = more.item(); // a collective: all ranks ask
    if (Distributed.rank() == 0) {
      System.out.println(sum.placements() + " " + item);
      System.out.println(settled);
    }
  }

  @Ranks(4)
  static void random() {
    var mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 2));
    DTensor.manualSeed(7);
    DTensor a = DTensorFactories.randn(mesh, List.of(shard(0), shard(1)), DType.FLOAT32, 3, 5);
    Tensor dropped = Random.dropout(a, 0.5, true, null);
    DTensor.manualSeed(7);
    DTensor b = DTensorFactories.randn(mesh, List.of(replicate(), shard(0)), DType.FLOAT32, 3, 5);
    boolean same = Arrays.equals(a.toFloatArray(), b.toFloatArray());
    boolean sameMask =
        Arrays.equals(dropped.toFloatArray(), Random.dropout(b, 0.5, true, null).toFloatArray());
    if (Distributed.rank() == 0) {
      System.out.println(same + " " + sameMask);
    }
  }

  @Ranks(2)
  static void gradients() {
    var mesh = initDeviceMesh("cpu", 2);
    Tensor w =
        distributeTensor(Creation.ones(DType.FLOAT32, 4, 4), mesh, shard(0)).requiresGrad(true);
    DTensor x = distributeTensor(Creation.ones(DType.FLOAT32, 3, 4), mesh, replicate());
    x.matmul(w.t()).sum().backward();
    Gradients.settle(w); // as clipping and DDP do
    if (w.grad() instanceof DTensor g && Distributed.rank() == 0) {
      System.out.println(g.placements() + " " + Arrays.toString(g.shape()));
    }
  }
}
