package dev.weft.c10d;

import dev.weft.c10d.debug.FlightRecorder;
import dev.weft.c10d.debug.FlightRecorderConfig;
import dev.weft.c10d.metrics.RankMetrics;
import dev.weft.c10d.metrics.StatusFile;
import dev.weft.c10d.store.Store;
import dev.weft.tensor.Device;
import dev.weft.tensor.cuda.Cuda;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * All state of one rank: who it is, its groups, its store, what its backends keep. Thread-safe.
 *
 * <p>A rank is a process, made by {@link Distributed#init}, or a thread of a {@link LocalWorld}.
 * {@link #current()} finds the calling thread's: the one bound to the thread, else the process's.
 * Threads that a rank starts itself are bound with {@link #wrap}.
 */
public final class RankContext {
  private static final ThreadLocal<@Nullable RankContext> BOUND = new ThreadLocal<>();
  private static final AtomicInteger THREAD_WORLDS = new AtomicInteger();
  private static volatile @Nullable RankContext process;

  private final int rank;
  private final int worldSize;
  private final Supplier<Store> store;
  private final Duration timeout;
  private final Map<String, String> environment;
  private final @Nullable SharedObjects shared;
  private final @Nullable String masterAddress;
  private final FlightRecorder recorder;
  private final FailureHandling failures = new FailureHandling(this);
  private final GroupTable groups;

  // Making a resource may take long (connecting), and must not hold up news of other ranks.
  private final Object resourceLock = new Object();
  private final Object lock = new Object();
  private final Map<Class<?>, AutoCloseable> resources = new LinkedHashMap<>();
  private final List<AutoCloseable> atEnd = new ArrayList<>();
  private final List<PeerListener> listeners = new ArrayList<>();
  private final Map<Integer, Throwable> failed = new LinkedHashMap<>();
  private final List<Integer> left = new ArrayList<>();
  private volatile boolean closed;
  private volatile @Nullable RankMetrics metrics;
  private volatile @Nullable StatusFile statusFile;
  private volatile @Nullable Device boundDevice;
  private volatile @Nullable LinkShape linkShape = LinkShape.fromEnvironment(System.getenv());

  RankContext(
      int rank,
      int worldSize,
      Supplier<Store> store,
      Duration timeout,
      String backend,
      @Nullable SharedObjects shared,
      @Nullable String masterAddress,
      FlightRecorderConfig recorderConfig) {
    this(
        rank,
        worldSize,
        store,
        timeout,
        backend,
        shared,
        masterAddress,
        recorderConfig,
        System.getenv());
  }

  RankContext(
      int rank,
      int worldSize,
      Supplier<Store> store,
      Duration timeout,
      String backend,
      @Nullable SharedObjects shared,
      @Nullable String masterAddress,
      FlightRecorderConfig recorderConfig,
      Map<String, String> environment) {
    if (worldSize < 1 || rank < 0 || rank >= worldSize) {
      throw new IllegalArgumentException(
          "rank is "
              + rank
              + " and worldSize "
              + worldSize
              + "; expected worldSize > 0 and 0 <= rank < worldSize");
    }
    this.rank = rank;
    this.worldSize = worldSize;
    this.store = store;
    this.timeout = timeout;
    this.environment = environment;
    this.shared = shared;
    this.masterAddress = masterAddress;
    this.recorder = new FlightRecorder(rank, recorderConfig);
    this.groups = new GroupTable(this, BackendConfig.parse(backend));
    if (shared != null) {
      shared.get(LocalRanks.class, LocalRanks::new).add(this);
    }
  }

  // ---- lookup ----

  /**
   * The calling thread's rank.
   *
   * @throws IllegalStateException if there is none, or if the thread belongs to no rank while a
   *     world of threads is running
   */
  public static RankContext current() {
    RankContext bound = BOUND.get();
    if (bound != null) {
      if (bound.closed) {
        throw new IllegalStateException(
            "rank " + bound.rank + " has left its world; its groups have been destroyed");
      }
      return bound;
    }
    if (THREAD_WORLDS.get() > 0) {
      throw new IllegalStateException(
          "thread '"
              + Thread.currentThread().getName()
              + "' belongs to no rank, while the ranks of"
              + " a running world are threads; start it with RankContext.wrap(...) on a rank");
    }
    RankContext p = process;
    if (p == null) {
      throw new IllegalStateException(
          "no process group: call Distributed.init() first, or run inside LocalWorld.run");
    }
    return p;
  }

  /** The calling thread's rank, or nothing where {@link #current()} would throw. */
  public static Optional<RankContext> find() {
    RankContext bound = BOUND.get();
    if (bound == null && THREAD_WORLDS.get() == 0) {
      bound = process;
    }
    return bound == null || bound.closed ? Optional.empty() : Optional.of(bound);
  }

  /** The same code as the calling thread's rank, on whichever thread runs it. */
  public static Runnable wrap(Runnable body) {
    RankContext context = current();
    return () -> {
      RankContext before = context.bind();
      try {
        body.run();
      } finally {
        restore(before);
      }
    };
  }

  /** The same code as the calling thread's rank, on whichever thread runs it. */
  public static <T extends @Nullable Object> Callable<T> wrap(Callable<T> body) {
    RankContext context = current();
    return () -> {
      RankContext before = context.bind();
      try {
        return body.call();
      } finally {
        restore(before);
      }
    };
  }

  /** Binds the thread to this rank and returns what was bound before. */
  @Nullable RankContext bind() {
    RankContext before = BOUND.get();
    BOUND.set(this);
    return before;
  }

  static void restore(@Nullable RankContext before) {
    if (before == null) {
      BOUND.remove();
    } else {
      BOUND.set(before);
    }
  }

  static void threadWorldStarts() {
    int unused = THREAD_WORLDS.incrementAndGet();
  }

  static void threadWorldEnds() {
    int unused = THREAD_WORLDS.decrementAndGet();
  }

  /** Makes this the process's rank. */
  void becomeProcess() {
    RankContext bound = BOUND.get();
    if (bound != null) {
      throw new IllegalStateException(
          "this thread is rank "
              + bound.rank
              + " of a world of threads already; Distributed.init() is for a rank that is a"
              + " process");
    }
    synchronized (RankContext.class) {
      if (process != null) {
        throw new IllegalStateException(
            "this process is rank " + process.rank + " of a world already; close that World first");
      }
      process = this;
    }
  }

  // ---- what it is ----

  /** This rank, from 0. */
  public int rank() {
    return rank;
  }

  /** The number of ranks. */
  public int worldSize() {
    return worldSize;
  }

  /** The group of all ranks. */
  public ProcessGroup world() {
    return groups.world();
  }

  /** The store that all ranks share. */
  public Store store() {
    return store.get();
  }

  /** The host that the store is reached by, or null where that is not known. */
  public @Nullable String masterAddress() {
    return masterAddress;
  }

  /** How long an operation may take unless a group or a call says otherwise. */
  public Duration timeout() {
    return timeout;
  }

  /** The variables that this rank's backends read. */
  public Map<String, String> environment() {
    return environment;
  }

  /** The CUDA device that this rank is bound to, or null. */
  public @Nullable Device boundDevice() {
    return boundDevice;
  }

  /** Binds this rank to a CUDA device, which becomes the calling thread's current one. */
  void bindDevice(Device device) {
    Cuda.setDevice(device.index());
    boundDevice = device;
  }

  /** The slow network that the host backend simulates, or null. */
  public @Nullable LinkShape linkShape() {
    return linkShape;
  }

  void linkShape(@Nullable LinkShape shape) {
    linkShape = shape;
  }

  GroupTable groups() {
    return groups;
  }

  /** The record of this rank's last calls. */
  public FlightRecorder flightRecorder() {
    return recorder;
  }

  /** What this rank tells a monitoring system, or null where none was asked for. */
  public @Nullable RankMetrics metrics() {
    return metrics;
  }

  /** Where this rank tells its launcher how far it is, or null where nobody asked. */
  @Nullable StatusFile statusFile() {
    return statusFile;
  }

  /** From now on tells others of this rank, as far as its variables say so. */
  void openToOthers() {
    String file = environment.get(StatusFile.VARIABLE);
    if (file != null) {
      StatusFile opened = StatusFile.open(Path.of(file));
      closeAtEnd(opened);
      statusFile = opened;
    }
    RankMetrics served =
        RankMetrics.serve(environment, rank, recorder, failures::watchdogState, this::boundDevice);
    if (served != null) {
      closeAtEnd(served);
      metrics = served;
    }
  }

  /** Where failures of this rank's calls are dealt with. */
  FailureHandling failures() {
    return failures;
  }

  // ---- for backends ----

  /** True when all ranks of the world are threads of this JVM. */
  public boolean isThreadWorld() {
    return shared != null;
  }

  /**
   * The one object of a class that this rank keeps until it ends, made when first asked for; it is
   * closed with the rank.
   */
  public <T extends AutoCloseable> T resource(Class<T> type, Supplier<T> maker) {
    synchronized (resourceLock) {
      AutoCloseable there = resources.get(type);
      if (there == null) {
        if (closed) {
          throw new IllegalStateException("rank " + rank + " has left its world");
        }
        there = maker.get();
        resources.put(type, there);
      }
      return type.cast(there);
    }
  }

  /**
   * The one object of a class that all ranks of a world of threads share, made when first asked
   * for.
   *
   * @throws IllegalStateException if the ranks are not threads of this JVM
   */
  public <T> T shared(Class<T> type, Supplier<T> maker) {
    SharedObjects all = shared;
    if (all == null) {
      throw new IllegalStateException("rank " + rank + " shares no memory with other ranks");
    }
    return all.get(type, maker);
  }

  /**
   * Tells that an operation failed that nobody waits for: it is logged and dumped, and what follows
   * is as the error handling mode says. May take seconds, as other ranks are told.
   */
  public void operationFailed(Throwable cause) {
    failures.unattended(cause);
  }

  /** Whether failures end this rank's operations under way, as the error handling mode says. */
  public boolean abortsAfterFailures() {
    return ErrorHandling.fromEnvironment(System.getenv()).aborts(TearDown.endsProcess());
  }

  /** Adds a listener, which hears at once of what has happened already. */
  public void addPeerListener(PeerListener listener) {
    Map<Integer, Throwable> failedBefore;
    List<Integer> leftBefore;
    synchronized (lock) {
      listeners.add(listener);
      failedBefore = Map.copyOf(failed);
      leftBefore = List.copyOf(left);
    }
    failedBefore.forEach(listener::peerFailed);
    leftBefore.forEach(listener::peerLeft);
  }

  /** The ranks that are known to have failed, and why. */
  Map<Integer, Throwable> failedPeers() {
    synchronized (lock) {
      return Map.copyOf(failed);
    }
  }

  /** Tells this rank that another has failed. */
  public void peerFailed(int globalRank, Throwable cause) {
    List<PeerListener> all;
    synchronized (lock) {
      if (failed.putIfAbsent(globalRank, cause) != null) {
        return;
      }
      all = List.copyOf(listeners);
    }
    recorder.event("peer_failed", "rank " + globalRank + ": " + cause);
    all.forEach(l -> l.peerFailed(globalRank, cause));
  }

  /** Tells this rank that another has ended well. */
  public void peerLeft(int globalRank) {
    List<PeerListener> all;
    synchronized (lock) {
      if (left.contains(globalRank)) {
        return;
      }
      left.add(globalRank);
      all = List.copyOf(listeners);
    }
    all.forEach(l -> l.peerLeft(globalRank));
  }

  // ---- end ----

  /** Has something closed after everything else of this rank. */
  void closeAtEnd(AutoCloseable last) {
    synchronized (resourceLock) {
      atEnd.add(last);
    }
  }

  /** Closes groups, then resources; bounded, may be repeated. */
  void close(Duration limit) {
    List<AutoCloseable> open;
    synchronized (RankContext.class) {
      if (process == this) {
        process = null;
      }
    }
    groups.destroyAll(limit);
    synchronized (resourceLock) {
      if (closed) {
        return;
      }
      closed = true;
      open = new ArrayList<>(atEnd);
      open.addAll(resources.values());
      resources.clear();
    }
    for (int i = open.size() - 1; i >= 0; i--) {
      Closing.quietly(open.get(i));
    }
  }

  @Override
  public String toString() {
    return "rank " + rank + " of " + worldSize;
  }
}
