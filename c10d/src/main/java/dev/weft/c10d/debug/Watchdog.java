package dev.weft.c10d.debug;

import java.time.Duration;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
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
  private final Runnable publisher;
  private final Consumer<RecordedCall> overdue;
  private final AtomicLong beats = new AtomicLong();
  private final Set<Long> reported = new HashSet<>();
  private final Thread watcher;
  private final Thread monitor;
  private volatile boolean closed;

  /**
   * How a watchdog works. Immutable.
   *
   * @param interval how often it looks
   * @param grace how long after its timeout a call is reported, when its own waiter did not
   * @param heartbeat how long the watching thread may be silent
   */
  public record Config(Duration interval, Duration grace, Duration heartbeat) {
    /** Reads {@code WEFT_*} and PyTorch's variables of the same meaning; the former win. */
    public static Config fromEnvironment(Map<String, String> environment) {
      Variables v = new Variables(environment);
      long interval = v.number(1_000, "WEFT_COORD_CHECK_MILSEC", "TORCH_NCCL_COORD_CHECK_MILSEC");
      long heartbeat =
          v.number(480, "WEFT_HEARTBEAT_TIMEOUT_SEC", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC");
      return new Config(
          Duration.ofMillis(Math.max(1, interval)),
          Duration.ofSeconds(2),
          Duration.ofSeconds(heartbeat));
    }
  }

  /**
   * Makes a watchdog.
   *
   * @param publisher tells the others where this rank is; what it throws is logged
   * @param overdue hears of each call that is overdue, once
   */
  public Watchdog(
      int rank,
      FlightRecorder recorder,
      Config config,
      Runnable publisher,
      Consumer<RecordedCall> overdue) {
    this.rank = rank;
    this.recorder = recorder;
    this.config = config;
    this.publisher = publisher;
    this.overdue = overdue;
    this.watcher = new Thread(this::watch, "weft-watchdog-" + rank);
    this.monitor = new Thread(this::monitor, "weft-heartbeat-" + rank);
    watcher.setDaemon(true);
    monitor.setDaemon(true);
  }

  /** Starts both threads. */
  public void start() {
    watcher.start();
    monitor.start();
  }

  private void watch() {
    while (!closed) {
      long unused = beats.incrementAndGet();
      for (RecordedCall call : recorder.calls()) {
        if (isOverdue(call) && reported.add(call.recordId())) {
          overdue.accept(call);
        }
      }
      try {
        publisher.run();
      } catch (RuntimeException e) {
        LOG.debug("rank {} could not tell the others where it is", rank, e);
      }
      LockSupport.parkNanos(this, config.interval().toNanos());
    }
  }

  private boolean isOverdue(RecordedCall call) {
    long limit = call.timeoutMillis() + config.grace().toMillis();
    return call.isActive() && call.ageNanos() / 1_000_000 > limit;
  }

  /**
   * Counts its own rounds, not the clock's time: when the whole JVM stood still, neither thread is
   * to blame.
   */
  private void monitor() {
    long rounds = Math.max(1, config.heartbeat().toMillis() / config.interval().toMillis());
    long silent = 0;
    long seen = beats.get();
    while (!closed) {
      LockSupport.parkNanos(this, config.interval().toNanos());
      long now = beats.get();
      silent = now == seen ? silent + 1 : 0;
      seen = now;
      if (silent == rounds) {
        String text =
            "watchdog heartbeat: the watchdog of rank "
                + rank
                + " has been silent for "
                + config.heartbeat().toMillis()
                + " ms; its calls are not looked after (this is no timeout of an operation)";
        LOG.error("{}", text);
        recorder.event("heartbeat", text);
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
  }
}
