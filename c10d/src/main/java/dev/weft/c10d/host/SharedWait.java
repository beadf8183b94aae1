package dev.weft.c10d.host;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/**
 * Waits until counters of other ranks have come so far: a busy wait where each rank can have a
 * processor of its own, else a while in which it lets others run, then naps that grow with the time
 * already waited. Where the rank's own thread goes on meanwhile there are naps alone. Nobody wakes
 * it but the end of a rank. Used by one thread at a time.
 */
final class SharedWait implements BooleanSupplier, Supplier<List<Integer>>, Round.Pause {
  /** The rank takes part too late, or its data do. */
  static final String NOT_ARRIVED = " did not arrive";

  /** The rank reads too late. */
  static final String NOT_TAKEN = " did not take this rank's data in time";

  /**
   * Longer than a time slice: where others compete for the processors, ranks that give theirs up
   * would seldom run at the same time again.
   */
  private static final long SPIN_NANOS = 20_000_000;

  private static final int SPINS_BETWEEN = 64;
  private static final long YIELD_NANOS = 500_000;
  private static final long SHORTEST_NAP = 50_000;
  private static final long LONGEST_NAP = 1_000_000;

  private final SharedSegment segment;
  private final HostGroup group;
  private final boolean spins;
  private int which;
  private int first;
  private int last;
  private long target;
  private long since;
  private boolean yields;

  /**
   * A way to wait.
   *
   * @param ranksHere how many ranks share this machine's processors
   */
  SharedWait(SharedSegment segment, HostGroup group, int ranksHere) {
    this.segment = segment;
    this.group = group;
    this.spins = ranksHere <= Runtime.getRuntime().availableProcessors();
  }

  /** Waits for one rank's counter. */
  void one(Round round, int rank, int which, long target, String words) {
    if (segment.counter(rank, which) < target) {
      await(round, rank, rank + 1, which, target, words);
    }
  }

  /** Waits for the counters of all other ranks. */
  void all(Round round, int which, long target, String words) {
    await(round, 0, group.size(), which, target, words);
  }

  private void await(Round round, int first, int last, int which, long target, String words) {
    this.first = first;
    this.last = last;
    this.which = which;
    this.target = target;
    boolean busy = spins && round.isCallers();
    if (!getAsBoolean() && !(busy && spin())) {
      since = 0;
      yields = !spins && round.isCallers();
      round.waitUntil(this, this, words, this);
    }
  }

  private boolean spin() {
    long start = 0;
    while (true) {
      for (int i = 0; i < SPINS_BETWEEN; i++) {
        if (getAsBoolean()) {
          return true;
        }
        Thread.onSpinWait();
      }
      long now = System.nanoTime();
      if (start == 0) {
        start = now;
      } else if (now - start > SPIN_NANOS) {
        return false;
      }
    }
  }

  @Override
  public boolean getAsBoolean() {
    while (first < last) {
      if (first != group.rank() && segment.counter(first, which) < target) {
        return false;
      }
      first++; // a counter that has come so far does not go back
    }
    return true;
  }

  /** Global ranks that are awaited still. Also asked by who wonders what this waits for. */
  @Override
  public List<Integer> get() {
    List<Integer> out = new ArrayList<>();
    for (int r = first; r < last; r++) {
      if (r != group.rank() && segment.peek(r, which) < target) {
        out.add(group.globalRank(r));
      }
    }
    return out;
  }

  @Override
  public void pause(Round blocker, long nanos, int turn) {
    long now = System.nanoTime();
    if (since == 0) {
      since = now;
    }
    long waited = now - since;
    if (yields && waited < YIELD_NANOS) {
      Spinning.yieldToOthers();
    } else {
      long nap = Math.max(SHORTEST_NAP, Math.min(LONGEST_NAP, waited / 8));
      LockSupport.parkNanos(blocker, Math.min(nanos, nap));
    }
  }
}
