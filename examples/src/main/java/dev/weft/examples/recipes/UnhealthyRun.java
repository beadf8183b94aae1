package dev.weft.examples.recipes;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.nn.Function;
import dev.weft.nn.Linear;
import dev.weft.nn.Sequential;
import dev.weft.parallel.health.DesyncException;
import dev.weft.parallel.health.NonFiniteException;
import dev.weft.parallel.health.NonFiniteWatch;
import dev.weft.parallel.health.ReplicaCheck;
import dev.weft.parallel.health.Straggler;
import dev.weft.parallel.health.Stragglers;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Unary;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** Finds a slow rank, the first NaN, and replicas that have drifted apart. */
public final class UnhealthyRun {
  private UnhealthyRun() {}

  /** Runs it on four threads. */
  public static void main(String[] args) {
    LocalWorld.run(4, UnhealthyRun::slow);
    LocalWorld.run(2, UnhealthyRun::notFinite);
    LocalWorld.run(2, UnhealthyRun::apart);
  }

  private static void slow(int rank) {
    var watch = Stragglers.of(List.of(Distributed.world()));
    for (int step = 0; step < 12; step++) {
      LockSupport.parkNanos(rank == 2 ? 60_000_000 : 1_000_000); // the step's work
      Distributed.barrier().await();
    }
    List<Straggler> found = watch.check(); // on all ranks, every so many steps
    if (rank == 0) {
      found.stream()
          .max(Comparator.comparingDouble(Straggler::share)) // on a busy machine others are, too
          .ifPresent(slowest -> System.out.println("slow: rank " + slowest.rank()));
    }
  }

  private static void notFinite(int rank) {
    var model = new Sequential(new Function(x -> x.mul(2)), new Function(Unary::log));
    try (var watch = NonFiniteWatch.over(model)) {
      float sign = rank == 1 ? -1 : 1;
      model.call(Tensor.of(new float[] {1, 2, 4 * sign, 8}, 4)); // a bad batch on rank 1
      watch.check(7);
    } catch (NonFiniteException e) {
      if (rank == 0) {
        System.out.println(e.getMessage()); // all ranks throw it, not only rank 1
      }
    }
  }

  private static void apart(int rank) {
    var model = new Linear(4, 4, true, new Generator(rank)); // forgot to seed alike
    try {
      ReplicaCheck.over(Distributed.world()).check(20, model.namedParameters());
    } catch (DesyncException e) {
      if (rank == 0) {
        System.out.println(e.getMessage());
      }
    }
  }
}
