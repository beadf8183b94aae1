package dev.weft.examples.guide;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.Distributed;
import dev.weft.parallel.health.Straggler;
import dev.weft.parallel.health.Stragglers;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** The programs of {@code docs/health.md}. */
final class HealthGuide {
  private HealthGuide() {}

  @Ranks(4)
  static void stragglers() {
    var mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 2));
    var watch = Stragglers.of(List.of(mesh.getGroup("dp"), Distributed.world()));
    for (int step = 0; step < 10; step++) {
      LockSupport.parkNanos(Distributed.rank() == 3 ? 60_000_000 : 1_000_000);
      Distributed.barrier().await();
    }
    List<Straggler> slow = watch.check(); // every 50 steps, on all ranks
    if (Distributed.rank() == 0) {
      slow.stream()
          .max(Comparator.comparingDouble(Straggler::share))
          .ifPresent(s -> System.out.println("slowest: rank " + s.rank() + " of " + s.ranks()));
    }
  }
}
