package dev.weft.c10d.host;

import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/**
 * Waits for counters of other ranks, and sets this rank's: a short busy wait where each rank can
 * have a processor of its own, then a while in which it lets others run; then it sleeps until the
 * rank that it waits for sets its counter and wakes it. Where the rank's own thread goes on
 * meanwhile, it sleeps at once. Used by one thread at a time.
 *
 * <p>A rank that goes to sleep says so and looks once more; one that has set a counter looks who
 * sleeps. Fences between the two on either side see to it that one of them notices. Processes sleep
 * on the word that says so, see {@link Scheduling}; threads, and processes where there is no such
 * thing or not yet, park.
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
  // call after call. Not for ever: a thread that yields may still keep its processor from the rank
  // it waits for.
  private static final long YIELD_NANOS = 200_000;

  private static final int AWAKE = 0;

  private final SharedSegment segment;
  private final HostGroup group;
  private final boolean spins;
  private int which;
  private int first;
  private int last;
  private long target;
  private long spinNanos = SPIN_NANOS;
  private final boolean threads;
  private boolean yields;
  private long yieldsUntil;
  private int processor;
  private boolean wakes;

  /**
   * A way to wait.
   *
   * @param ranksHere how many ranks share this machine's processors
   * @param threads whether the ranks are threads of this process
   */
  SharedWait(SharedSegment segment, HostGroup group, int ranksHere, boolean threads) {
    this.segment = segment;
    this.group = group;
    this.spins = ranksHere <= Runtime.getRuntime().availableProcessors();
    this.threads = threads;
    if (!threads) {
      Scheduling.prepare();
    }
  }

  /** Sets one of this rank's counters, after all that was written before, and wakes who waits. */
  void set(int which, long value) {
    if (!wakes && !threads && Scheduling.isReady()) {
      wakes = true;
      segment.setCounter(group.rank(), SharedLayout.WAKES, 1);
    }
    segment.setCounter(group.rank(), which, value);
    VarHandle.fullFence();
    int said = sleeping(group.rank(), which);
    for (int r = 0; r < group.size(); r++) {
      long sleeps = r == group.rank() ? AWAKE : segment.counter(r, SharedLayout.SLEEPING);
      if (sleeps == said) {
        segment.setCounter(r, SharedLayout.SLEEPING, AWAKE);
        Scheduling.wake(segment.counterAddress(r, SharedLayout.SLEEPING));
      } else if (sleeps == -said) {
        segment.setCounter(r, SharedLayout.SLEEPING, AWAKE);
        group.link(r).wake();
      }
    }
  }

  /** What a rank says that sleeps for this counter of another; its negative where it parks. */
  private static int sleeping(int rank, int which) {
    return rank * SharedLayout.PAGE + which + 1;
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
        if (sharesProcessor()) {
          return false;
        }
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
    if (yields && System.nanoTime() < yieldsUntil) {
      shortenSlices();
      Spinning.yieldToOthers();
      return;
    }
    boolean parks;
    int said;
    do { // what it waits for may be there meanwhile, and another rank still missing
      said = sleeping(first, which);
      parks = threads || !Scheduling.isReady() || segment.counter(first, SharedLayout.WAKES) == 0;
      segment.setCounter(group.rank(), SharedLayout.SLEEPING, parks ? -said : said);
      VarHandle.fullFence();
    } while (!getAsBoolean() && said != sleeping(first, which));
    if (first < last && parks) {
      LockSupport.parkNanos(blocker, nanos);
    } else if (first < last) {
      Scheduling.sleep(segment.counterAddress(group.rank(), SharedLayout.SLEEPING), said);
    }
    segment.setCounter(group.rank(), SharedLayout.SLEEPING, AWAKE);
  }

  /** Whether another rank of the group needs the very processor that this one is on. */
  private boolean sharesProcessor() {
    if (threads || !Scheduling.isReady()) {
      return false;
    }
    int here = Scheduling.processor() + 1;
    if (here != processor) {
      processor = here;
      segment.setCounter(group.rank(), SharedLayout.PROCESSOR, here);
    }
    for (int r = 0; r < group.size(); r++) {
      if (r != group.rank()
          && segment.counter(r, SharedLayout.PROCESSOR) == here
          && segment.counter(r, SharedLayout.SLEEPING) == AWAKE) {
        return true;
      }
    }
    return false;
  }

  private void shortenSlices() {
    if (!threads && Scheduling.isReady()) {
      Scheduling.shortenSlices();
    }
  }
}
