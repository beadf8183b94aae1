package dev.weft.c10d.host;

import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/**
 * Waits for counters of other ranks, and sets this rank's: a short busy wait where each rank can
 * have a processor of its own, then some turns in which it lets others run; then it sleeps until a
 * rank that sets a counter wakes it. Where the rank's own thread goes on meanwhile, it sleeps at
 * once. Used by one thread at a time.
 *
 * <p>A rank that goes to sleep says so and looks once more; one that has set a counter looks who
 * sleeps. Fences between the two on either side see to it that one of them notices.
 */
final class SharedWait implements BooleanSupplier, Supplier<List<Integer>>, Round.Pause {
  /** The rank takes part too late, or its data do. */
  static final String NOT_ARRIVED = " did not arrive";

  /** The rank reads too late. */
  static final String NOT_TAKEN = " did not take this rank's data in time";

  // Short: a rank that was just woken is often put on the very processor of the one that spins. It
  // gets shorter while it is in vain, as ranks that share a processor only come on by yielding.
  private static final long SPIN_NANOS = 10_000;
  private static final long LEAST_SPIN_NANOS = 500;
  private static final int SPINS_BETWEEN = 32;

  // Longer than it takes to wake a rank: else each of two ranks sleeps while the other is woken,
  // call after call.
  private static final long YIELD_NANOS = 200_000;

  /** Where ranks share processors, whose time others need. */
  private static final int YIELDS_OF_MANY = 50;

  private final SharedSegment segment;
  private final HostGroup group;
  private final boolean spins;
  private int which;
  private int first;
  private int last;
  private long target;
  private long spinNanos = SPIN_NANOS;
  private boolean yields;
  private long yieldsUntil;

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

  /** Sets one of this rank's counters, after all that was written before, and wakes who waits. */
  void set(int which, long value) {
    segment.setCounter(group.rank(), which, value);
    VarHandle.fullFence();
    for (int r = 0; r < group.size(); r++) {
      if (r != group.rank() && segment.counter(r, SharedLayout.SLEEPING) == which + 1) {
        segment.setCounter(r, SharedLayout.SLEEPING, 0);
        group.link(r).wake();
      }
    }
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
      yields = round.isCallers();
      yieldsUntil = System.nanoTime() + YIELD_NANOS;
      round.waitUntil(this, this, words, this);
    }
  }

  private boolean spin() {
    long start = 0;
    while (true) {
      for (int i = 0; i < SPINS_BETWEEN; i++) {
        if (getAsBoolean()) {
          spinNanos = Math.min(SPIN_NANOS, 2 * spinNanos);
          return true;
        }
        Thread.onSpinWait();
      }
      long now = System.nanoTime();
      if (start == 0) {
        start = now;
      } else if (now - start > spinNanos) {
        spinNanos = Math.max(LEAST_SPIN_NANOS, spinNanos / 2);
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
    if (yields) {
      yields = spins ? System.nanoTime() < yieldsUntil : turn < YIELDS_OF_MANY;
      Spinning.yieldToOthers();
      return;
    }
    segment.setCounter(group.rank(), SharedLayout.SLEEPING, which + 1);
    VarHandle.fullFence();
    if (!getAsBoolean()) {
      LockSupport.parkNanos(blocker, nanos);
    }
    segment.setCounter(group.rank(), SharedLayout.SLEEPING, 0);
  }
}
