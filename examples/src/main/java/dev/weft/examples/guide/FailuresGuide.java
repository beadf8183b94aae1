package dev.weft.examples.guide;

import static dev.weft.dtensor.DTensor.distributeTensor;
import static dev.weft.dtensor.Placements.partial;
import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.GroupOptions;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.c10d.store.HashStore;
import dev.weft.dtensor.checkpoint.Checkpoint;
import dev.weft.nn.Function;
import dev.weft.nn.Linear;
import dev.weft.nn.Sequential;
import dev.weft.parallel.health.NonFiniteWatch;
import dev.weft.parallel.health.ReplicaCheck;
import dev.weft.parallel.pipeline.Pipeline;
import dev.weft.parallel.pipeline.Schedule;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Op;
import dev.weft.tensor.op.Unary;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;

/** Makes the failures of {@code docs/failures.md}: each program throws what the page shows. */
final class FailuresGuide {
  private FailuresGuide() {}

  private static Tensor ones(int n) {
    float[] values = new float[n];
    Arrays.fill(values, 1);
    return Tensor.of(values, n);
  }

  // ---- ranks that do not meet ----

  @Ranks(0)
  static void lateRank() {
    var end = new CountDownLatch(1);
    LocalWorld.of(2)
        .timeout(Duration.ofMillis(300))
        .run(
            rank -> {
              if (rank == 1) {
                end.await(); // stuck elsewhere
                return;
              }
              try {
                Distributed.allReduce(ones(4), ReduceOp.SUM).await();
              } finally {
                end.countDown();
              }
            });
  }

  @Ranks(0)
  static void failedPeer() {
    var seen = new AtomicReference<DistributedException>();
    var called = new CountDownLatch(1);
    try {
      LocalWorld.run(
          2,
          rank -> {
            if (rank == 1) {
              called.await();
              throw new IllegalStateException("out of memory in step 2");
            }
            Work sum = Distributed.allReduce(ones(4), ReduceOp.SUM, null, CollectiveOptions.ASYNC);
            called.countDown();
            try {
              sum.await();
            } catch (DistributedException e) {
              seen.set(e);
            }
          });
    } catch (IllegalStateException firstCause) {
      throw seen.get(); // what the other rank saw of it
    }
  }

  @Ranks(2)
  static void otherOperation() {
    if (Distributed.rank() == 0) {
      Distributed.allReduce(ones(4), ReduceOp.SUM).await();
    } else {
      Distributed.broadcast(ones(8), 0).await();
    }
  }

  @Ranks(2)
  static void otherShape() {
    Distributed.allReduce(ones(Distributed.rank() == 0 ? 4 : 8), ReduceOp.SUM).await();
  }

  @Ranks(0)
  static void unusableGroup() {
    var after = new AtomicReference<DistributedException>();
    LocalWorld.run(
        2,
        rank -> {
          try {
            otherShape();
          } catch (DistributedException mismatch) {
            try {
              Distributed.barrier().await();
            } catch (DistributedException e) {
              if (rank == 0) {
                after.set(e);
              }
            }
          }
        });
    throw after.get();
  }

  @Ranks(0)
  static void missingAtBarrier() {
    var seen = new AtomicReference<DistributedException>();
    LocalWorld.run(
        4,
        rank -> {
          if (rank % 2 == 0) {
            try {
              Distributed.world().monitoredBarrier(Duration.ofMillis(300), true);
            } catch (DistributedException e) {
              if (rank == 0) {
                seen.set(e);
              }
            }
          }
        });
    throw seen.get();
  }

  @Ranks(1)
  static void keyThatNobodySets() {
    new HashStore().waitFor(List.of("config"), Duration.ofMillis(50));
  }

  // ---- calls that cannot be right ----

  @Ranks(0)
  static void beforeInit() {
    Distributed.rank();
  }

  @Ranks(4)
  static void meshOfAnotherSize() {
    initDeviceMesh("cpu", dim("dp", 3), dim("tp", 2));
  }

  @Ranks(2)
  static void unknownDimension() {
    initDeviceMesh("cpu", dim("dp", 2)).get("tp");
  }

  @Ranks(2)
  static void unknownBackend() {
    Distributed.newGroup(List.of(0, 1), GroupOptions.DEFAULT.withBackend("gloom"));
  }

  @Ranks(2)
  static void rootOutside() {
    Distributed.broadcast(ones(4), 2).await();
  }

  @Ranks(2)
  static void plainAmongDistributed() {
    var mesh = initDeviceMesh("cpu", dim("tp", 2));
    distributeTensor(ones(4), mesh, shard(0)).add(ones(4));
  }

  @Ranks(2)
  static void partialAsTarget() {
    var mesh = initDeviceMesh("cpu", dim("tp", 2));
    distributeTensor(ones(4), mesh, replicate()).redistribute(partial());
  }

  private static final Op UNRULY =
      Op.function(
          "guide.unruly",
          (in, attrs) -> TensorSpec.one(in[0].shape(), in[0].dtype()),
          (in, out, attrs) -> {});

  @Ranks(2)
  static void operatorWithoutRule() {
    var mesh = initDeviceMesh("cpu", dim("tp", 2));
    Dispatcher.call(UNRULY, Attrs.NONE, distributeTensor(ones(4), mesh, shard(0)));
  }

  @Ranks(2)
  static void unevenMicrobatches() {
    var mesh = initDeviceMesh("cpu", dim("pp", 2));
    var stage = new Linear(4, 4, true, new Generator(1));
    var pipeline =
        Pipeline.of(
            mesh,
            List.of(stage),
            Schedule.GPIPE,
            4,
            (output, target) -> Losses.mseLoss(output, target, "mean"));
    Tensor batch = Tensor.of(new float[40], 10, 4);
    if (mesh.getLocalRank() == 0) {
      pipeline.step(batch, batch);
    }
  }

  // ---- tensors, gradients, memory ----

  @Ranks(1)
  static void gradientOfManyValues() {
    ones(4).requiresGrad(true).mul(2).backward();
  }

  @Ranks(1)
  static void changedBeforeBackward() {
    Tensor x = ones(4).requiresGrad(true).mul(1);
    Tensor y = Unary.exp(x);
    Tensor loss = y.sum();
    InPlace.add(y, ones(4));
    loss.backward();
  }

  @Ranks(1)
  static void afterItsScope() {
    Tensor kept;
    try (TensorScope scope = TensorScope.open()) {
      kept = ones(4).mul(2);
    }
    kept.add(1);
  }

  @Ranks(1)
  static void otherShapes() {
    ones(4).add(ones(3));
  }

  // ---- models that are not well ----

  @Ranks(2)
  static void notFinite() {
    var model = new Sequential(new Function(x -> x.mul(2)), new Function(Unary::log));
    try (var watch = NonFiniteWatch.over(model)) {
      float sign = Distributed.rank() == 1 ? -1 : 1;
      model.call(Tensor.of(new float[] {1, 2, 4 * sign, 8}, 4));
      watch.check(7);
    }
  }

  @Ranks(2)
  static void replicasApart() {
    var model = new Linear(4, 4, false, new Generator(Distributed.rank()));
    ReplicaCheck.over(Distributed.world()).check(20, model.namedParameters());
  }

  @Ranks(1)
  static void anotherModel() throws IOException {
    Path folder = Files.createTempDirectory("checkpoints");
    var saved = new Linear(4, 4, false, new Generator(1));
    Checkpoint checkpoint = Checkpoint.save(folder, 1, saved, null, Map.of());
    checkpoint.load(new Linear(4, 8, false, new Generator(1)), null);
  }

  // ---- no failure ----

  @Ranks(1)
  static void pausing() {
    try (var pause = Distributed.pauseWatchdog()) {
      LockSupport.parkNanos(1_000_000); // an evaluation that takes an hour
    }
  }
}
