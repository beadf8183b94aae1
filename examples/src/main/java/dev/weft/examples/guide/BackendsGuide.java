package dev.weft.examples.guide;

import static dev.weft.funcol.FunctionalCollectives.allGatherTensor;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.FakeWorld;
import dev.weft.c10d.GroupOptions;
import dev.weft.c10d.InitOptions;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.World;
import dev.weft.c10d.fake.FakeTraffic;
import dev.weft.c10d.host.HostOptions;
import dev.weft.tensor.Tensor;
import java.util.List;

/** The programs of {@code docs/backends.md}. */
final class BackendsGuide {
  private BackendsGuide() {}

  static void choosing() {
    try (World world = Distributed.init(InitOptions.DEFAULT.withBackend("mpi"))) {
      Distributed.allReduce(Tensor.of(new float[] {1}), ReduceOp.SUM).await();
    }
    LocalWorld.of(4)
        .backend("host")
        .run(
            rank -> {
              var options = GroupOptions.DEFAULT.withBackend("host");
              Distributed.newGroup(List.of(0, 1), options).barrier().await();
            });
  }

  static void algorithms() {
    var options =
        GroupOptions.DEFAULT.withBackendOptions(
            HostOptions.DEFAULT.withAlgorithm("all_reduce", "ring"));
    Distributed.newGroup(List.of(0, 1), options).barrier().await();
  }

  @Ranks(0)
  static void counting() {
    FakeWorld.run(
        3, // this thread is rank 3 of 64
        64,
        rank -> {
          Tensor gradients = Tensor.of(new float[1024], 1024);
          Distributed.allReduce(gradients, ReduceOp.SUM).await();
          Tensor whole = allGatherTensor(gradients, 0, Distributed.world());
          System.out.println(whole.describe());
          System.out.println(FakeTraffic.current());
        });
  }
}
