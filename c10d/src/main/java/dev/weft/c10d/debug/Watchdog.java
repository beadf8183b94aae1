package dev.weft.c10d.debug;

import java.time.Duration;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Looks after the outstanding calls of all groups of one rank, on two daemon threads: one reports
 * calls that are under way for longer than they may, and tells the others where this rank is; the
 * other one watches the first. What the rank does outside of calls does not matter to it. Started
 * once; closing it ends both threads.
 */
public final class Watchdog implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Watchdog.class);
  private static final long CLOSE_MILLIS = 1_000;

  private final int rank;
  private final FlightRecorder recorder;
  private final Config config;
  private final Listener listener;
  private final AtomicInteger pauses = new AtomicInteger();
  private final AtomicLong beats = new AtomicLong();
  private final Set<Long> reported = new HashSet<>();
  private final Thread watcher;
  private final Thread monitor;
  private volatile long resumed;
  private volatile boolean silent;
  private volatile boolean closed;

  /** What a watchdog does at a moment. */
  public enum State {
    /** None has been started. */
    OFF,
    /** It looks after calls. */
    WATCHING,
    /** It has been told to report none. */
    PAUSED,
    /** It has not looked for longer than its heartbeat allows. */
    SILENT
  }

  /** What the watchdog tells; on its own threads. */
  public interface Listener {
    /** It has looked: the others may be told where this rank is. What this throws is logged. */
    void round();

    /** A call is overdue; each is told once. */
    void overdue(RecordedCall call);

    /** The watchdog itself does not look any more. */
    void silent(String text);

    /** It has ended. */
    void closed();
  }

  /**
   * How a watchdog works. Immutable.
   *
   * @param interval how often it looks
   * @param grace how long after its timeout a call is reported, when its own waiter did not
   * @param heartbeat how long the watching thread may be silent
   * @param monitored whether that is looked after
   */
  public record Config(Duration interval, Duration grace, Duration heartbeat, boolean monitored) {
    /** Reads {@code WEFT_*} and PyTorch's variables of the same meaning; the former win. */
    public static Config fromEnvironment(Map<String, String> environment) {
      Variables v = new Variables(environment);
      long interval = v.number(1_000, "WEFT_COORD_CHECK_MILSEC", "TORCH_NCCL_COORD_CHECK_MILSEC");
      long heartbeat =
          v.number(480, "WEFT_HEARTBEAT_TIMEOUT_SEC", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC");
      return new Config(
          Duration.ofMillis(Math.max(1, interval)),
          Duration.ofSeconds(2),
          Duration.ofSeconds(heartbeat),
          v.flag(true, "WEFT_ENABLE_MONITORING", "TORCH_NCCL_ENABLE_MONITORING"));
    }
  }

  /** Makes a watchdog. */
  public Watchdog(int rank, FlightRecorder recorder, Config config, Listener listener) {
    this.rank = rank;
    this.recorder = recorder;
    this.config = config;
    this.listener = listener;
    this.watcher = new Thread(this::watch, "weft-watchdog-" + rank);
    this.monitor = new Thread(this::monitor, "weft-heartbeat-" + rank);
    watcher.setDaemon(true);
    monitor.setDaemon(true);
  }

  /** Starts both threads. */
  public void start() {
    watcher.start();
    if (config.monitored()) {
      monitor.start();
    }
  }

  /**
   * Has no call reported until the returned object is closed; for what is known to take long. The
   * time of calls under way starts anew then. Pauses may overlap.
   */
  public Pause pause() {
    int unused = pauses.incrementAndGet();
    return new Pause();
  }

  /** A pause, which ends when it is closed, once. */
  public final class Pause implements AutoCloseable {
    private final AtomicBoolean over = new AtomicBoolean();

    private Pause() {}

    @Override
    public void close() {
      if (over.compareAndSet(false, true)) {
        resumed = recorder.now();
        int unused = pauses.decrementAndGet();
      }
    }
  }

  /** What it does now. */
  public State state() {
    return closed
        ? State.OFF
        : silent ? State.SILENT : pauses.get() > 0 ? State.PAUSED : State.WATCHING;
  }

  private void watch() {
    while (!closed) {
      long unused = beats.incrementAndGet();
      for (RecordedCall call : recorder.calls()) {
        if (isOverdue(call) && reported.add(call.recordId())) {
          listener.overdue(call);
        }
      }
      try {
        listener.round();
      } catch (RuntimeException e) {
        LOG.debug("rank {} could not tell the others where it is", rank, e);
      }
      LockSupport.parkNanos(this, config.interval().toNanos());
    }
  }

  private boolean isOverdue(RecordedCall call) {
    if (pauses.get() > 0 || !call.isActive()) {
      return false;
    }
    long limit = call.timeoutMillis() + config.grace().toMillis();
    long age = recorder.now() - Math.max(call.created(), resumed);
    return age / 1_000_000 > limit;
  }

  /**
   * Counts its own rounds, not the clock's time: when the whole JVM stood still, neither thread is
   * to blame.
   */
  private void monitor() {
    long rounds = Math.max(1, config.heartbeat().toMillis() / config.interval().toMillis());
    long still = 0;
    long seen = beats.get();
    while (!closed) {
      LockSupport.parkNanos(this, config.interval().toNanos());
      long now = beats.get();
      still = now == seen ? still + 1 : 0;
      seen = now;
      silent = still >= rounds;
      if (still == rounds) {
        String text =
            "watchdog heartbeat: the watchdog of rank "
                + rank
                + " has been silent for "
                + config.heartbeat().toMillis()
                + " ms; its calls are not looked after (this is no timeout of an operation)";
        LOG.error("{}", text);
        recorder.event("heartbeat", text);
        listener.silent(text);
      }
    }
  }

  @Override
  public void close() {
    closed = true;
    LockSupport.unpark(watcher);
    LockSupport.unpark(monitor);
    try {
      watcher.join(CLOSE_MILLIS);
      monitor.join(CLOSE_MILLIS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    listener.closed();
  }
}
