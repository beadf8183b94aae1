package dev.weft.c10d.host;

import dev.weft.c10d.Deadline;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;

/**
 * The short busy wait of who awaits a message, before it sleeps: it looks after the links that the
 * message, or its answer, may come over. Stateless.
 */
final class MessageWait {
  private static final int PROCESSORS = Runtime.getRuntime().availableProcessors();

  /** As long as {@link SharedWait} lets others run. */
  private static final long NANOS = 200_000;

  private static final int SPINS = 200;

  private MessageWait() {}

  /**
   * Waits a while; while data come, longer.
   *
   * @param peer the group rank of the other side, or negative for any
   */
  static void await(HostGroup group, int peer, Deadline deadline, BooleanSupplier done) {
    List<Attendance> all = attend(group, peer);
    if (all.isEmpty()) {
      return;
    }
    try {
      boolean spins = group.context().rankContext().worldSize() <= PROCESSORS;
      long start = System.nanoTime();
      int turn = 0;
      while (!done.getAsBoolean()) {
        boolean moved = false;
        for (Attendance a : all) {
          moved |= a.progress();
        }
        if (Thread.currentThread().isInterrupted()) {
          return;
        } else if (moved && !deadline.hasPassed()) {
          start = System.nanoTime();
          turn = 0;
        } else if (spins && turn < SPINS) {
          turn++;
          Thread.onSpinWait();
        } else if (System.nanoTime() - start > NANOS) {
          return;
        } else {
          Spinning.yieldToOthers();
        }
      }
    } finally {
      all.forEach(Attendance::close);
    }
  }

  private static List<Attendance> attend(HostGroup group, int peer) {
    if (peer >= 0) {
      Attendance one = group.link(peer).attend();
      return one == null ? List.of() : List.of(one);
    }
    List<Attendance> all = new ArrayList<>();
    for (int r = 0; r < group.size(); r++) {
      Attendance one = r == group.rank() ? null : group.link(r).attend();
      if (one != null) {
        all.add(one);
      }
    }
    return all;
  }
}
