package dev.weft.c10d.host;

import dev.weft.c10d.PeerFailedException;
import java.lang.invoke.VarHandle;

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
  private final HostGroup group;
  private final boolean direct;
  private long next;
  private long taken;

  /**
   * The steps of a group.
   *
   * @param direct whether slots hold addresses of memory that is lent
   */
  SharedSteps(SharedSegment segment, HostGroup group, SharedWait wait, boolean direct) {
    this.group = group;
    this.direct = direct;
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
    wait.set(SharedLayout.WRITTEN, step + 1);
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
      wait.set(SharedLayout.READ, taken);
    }
  }

  /** Whether slots hold addresses of memory that is lent. */
  boolean areDirect() {
    return direct;
  }

  /**
   * Begins to read memory that others lend in a step; everything of it is known to be there.
   * Nothing is waited for until {@link #read}, {@link #notReading} or {@link #giveUp}.
   *
   * @throws PeerFailedException if one of them has given up
   */
  void reading(Round round, long step, boolean[] lenders) {
    segment.setCounter(rank, SharedLayout.READING, step + 1);
    VarHandle.fullFence();
    for (int r = 0; r < lenders.length; r++) {
      if (lenders[r] && r != rank && segment.counter(r, SharedLayout.REVOKED) != 0) {
        throw new PeerFailedException(
            round.describe() + " cannot end: rank " + group.globalRank(r) + " gave up on it");
      }
    }
  }

  /** Ends what {@link #reading} begins, where more is to be read in the step. */
  void notReading() {
    segment.setCounter(rank, SharedLayout.READING, taken);
  }

  /** Waits until all have done with what this rank lends in a step. */
  void awaitTaken(Round round, long step) {
    wait.all(round, SharedLayout.READ, step + 1, SharedWait.NOT_TAKEN);
  }

  /** After a failure: this rank reads no more, and when this returns nobody reads its memory. */
  void giveUp() {
    notReading();
    segment.setCounter(rank, SharedLayout.REVOKED, 1);
    VarHandle.fullFence();
    for (int r = 0; r < group.size(); r++) {
      while (r != rank
          && segment.counter(r, SharedLayout.READING) > segment.counter(r, SharedLayout.READ)) {
        Spinning.yieldToOthers(); // copying is finite
      }
    }
  }

  /** Ends a collective of so many steps. */
  void end(long steps) {
    next += steps;
    if (steps > 0) {
      wait.set(SharedLayout.WRITTEN, next);
      read(next - 1);
    }
  }
}
