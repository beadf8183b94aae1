package dev.weft.c10d.host;

/**
 * The order in which the ranks of a group use their slots. Steps are counted through all
 * collectives, on all ranks alike; in a step a rank may put data into a slot of its own, and takes
 * what others have put there, in ascending order. A slot is written again when all have done with
 * it. Used by one thread at a time.
 */
final class SharedSteps {
  private final SharedSegment segment;
  private final SharedWait wait;
  private final int rank;
  private long next;
  private long taken;

  SharedSteps(SharedSegment segment, HostGroup group, SharedWait wait) {
    this.segment = segment;
    this.wait = wait;
    this.rank = group.rank();
  }

  /** The number of the next step that no collective has used. */
  long next() {
    return next;
  }

  /** Waits until this rank's slot of a step may be written; its address. */
  long toWrite(Round round, long step) {
    long free = step + 1 - SharedLayout.SLOTS;
    if (free > 0) {
      wait.all(round, SharedLayout.READ, free, SharedWait.NOT_TAKEN);
    }
    return segment.slot(rank, step);
  }

  /** This rank's data of a step, and of all before, are there. */
  void written(long step) {
    segment.setCounter(rank, SharedLayout.WRITTEN, step + 1);
  }

  /** Waits for another rank's data of a step; their address. */
  long toRead(Round round, int from, long step) {
    wait.one(round, from, SharedLayout.WRITTEN, step + 1, SharedWait.NOT_ARRIVED);
    return segment.slot(from, step);
  }

  /** This rank has done with what the others put there in a step, and in all before. */
  void read(long step) {
    if (step >= taken) {
      taken = step + 1;
      segment.setCounter(rank, SharedLayout.READ, taken);
    }
  }

  /** Ends a collective of so many steps. */
  void end(long steps) {
    next += steps;
    if (steps > 0) {
      segment.setCounter(rank, SharedLayout.WRITTEN, next);
      read(next - 1);
    }
  }
}
