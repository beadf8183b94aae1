package dev.weft.examples.trainer;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.ProcessGroup;
import dev.weft.mesh.DeviceMesh;
import dev.weft.parallel.health.NonFiniteWatch;
import dev.weft.parallel.health.ReplicaCheck;
import dev.weft.parallel.health.Straggler;
import dev.weft.parallel.health.Stragglers;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The checks that the options ask for. One rank's; all call alike. */
final class HealthChecks implements AutoCloseable {
  private final HealthOptions options;
  private final int every;
  private final ParallelModel model;
  private final ReplicaCheck replicas;
  private final @Nullable NonFiniteWatch numbers;
  private final @Nullable Stragglers stragglers;

  /**
   * Makes them.
   *
   * @param every how many steps lie between two looks for slow ranks
   */
  HealthChecks(HealthOptions options, int every, ParallelModel model, DeviceMesh mesh) {
    this.options = options;
    this.every = every;
    this.model = model;
    this.replicas = ReplicaCheck.over(mesh.getGroup("dp"));
    this.numbers = options.nan ? NonFiniteWatch.over(model.stages()) : null;
    List<ProcessGroup> groups = new ArrayList<>(mesh.getAllGroups());
    groups.add(Distributed.world());
    this.stragglers = options.stragglers ? Stragglers.of(groups) : null;
  }

  /** Between backward and update; step counts from 1. */
  void beforeUpdate(long step) {
    NonFiniteWatch watch = numbers;
    if (watch != null) {
      watch.check(step);
    }
  }

  /**
   * After the update; step counts from 1.
   *
   * @param out gets what the first rank of each group has to say of it
   */
  void afterStep(long step, PrintStream out) {
    if (options.desync > 0 && step % options.desync == 0) {
      replicas.check(step, model.namedParameters());
    }
    Stragglers watch = stragglers;
    if (watch != null && step % every == 0) {
      for (Straggler slow : watch.check()) {
        if (slow.ranks().get(0) == Distributed.rank()) {
          out.println("step " + step + ": " + slow);
        }
      }
    }
  }

  @Override
  public void close() {
    NonFiniteWatch watch = numbers;
    if (watch != null) {
      watch.close();
    }
  }
}
