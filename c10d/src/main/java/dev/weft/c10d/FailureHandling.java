package dev.weft.c10d;

import dev.weft.c10d.debug.ControlPipe;
import dev.weft.c10d.debug.RankStatus;
import dev.weft.c10d.debug.RecordedCall;
import dev.weft.c10d.debug.Watchdog;
import dev.weft.c10d.store.Store;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a rank does about calls that fail, or should have: dumps, a desync report, the end of all
 * groups or of the process. Thread-safe.
 */
final class FailureHandling {
  private static final Logger LOG = LoggerFactory.getLogger(FailureHandling.class);
  private static final Duration STORE_LIMIT = Duration.ofSeconds(2);

  private static final Duration ABORT_LIMIT = Duration.ofSeconds(2);

  private final RankContext context;
  private final AtomicBoolean reported = new AtomicBoolean();
  private volatile Map<String, String> environment = System.getenv();
  private volatile boolean watching;
  private volatile @Nullable Watchdog started;

  FailureHandling(RankContext context) {
    this.context = context;
  }

  /** Reads these variables, and opens the pipe through which dumps are asked for. */
  void begin(Map<String, String> variables) {
    environment = variables;
    String prefix = ControlPipe.prefix(variables);
    if (prefix != null) {
      ControlPipe unused =
          context.resource(
              ControlPipe.class,
              () -> ControlPipe.open(prefix, context.rank(), context.flightRecorder()));
    }
  }

  /**
   * Starts the watchdog, once. In a world of threads that is done for the first call that nobody
   * awaits; where all are awaited there is nothing to look after.
   */
  void watch(boolean awaited) {
    if (!watching && context.worldSize() > 1 && !(awaited && context.isThreadWorld())) {
      Watchdog unused = watchdog();
    }
  }

  /** This rank's watchdog, which is started if need be. */
  Watchdog watchdog() {
    Watchdog there = context.resource(Watchdog.class, this::start);
    watching = true;
    return there;
  }

  /** What the watchdog does, without starting one. */
  Watchdog.State watchdogState() {
    Watchdog there = started;
    return there == null ? Watchdog.State.OFF : there.state();
  }

  private Watchdog start() {
    ErrorHandling mode = ErrorHandling.fromEnvironment(environment);
    boolean propagates = ErrorHandling.propagates(environment);
    Watchdog watchdog =
        new Watchdog(
            context.rank(),
            context.flightRecorder(),
            Watchdog.Config.fromEnvironment(environment),
            new Watchdog.Listener() {
              @Override
              public void round() {
                tellStatus();
              }

              @Override
              public void overdue(RecordedCall call) {
                FailureHandling.this.overdue(call, mode, propagates);
              }

              @Override
              public void silent(String text) {
                dump(new DistributedException(text));
              }

              @Override
              public void closed() {
                forgetStatus();
              }
            });
    watchdog.start();
    started = watchdog;
    return watchdog;
  }

  private Store briefStore() {
    return context.store().withTimeout(STORE_LIMIT);
  }

  private void tellStatus() {
    RankStatus.publish(briefStore(), context.rank(), context.flightRecorder());
  }

  private void forgetStatus() {
    try {
      RankStatus.remove(briefStore(), context.rank());
    } catch (DistributedException | IllegalStateException e) {
      LOG.debug("rank {} could not take its status out of the store", context.rank(), e);
    }
  }

  private void dump(Throwable cause) {
    context.flightRecorder().dumpForFailure(cause, context.isThreadWorld());
  }

  private void overdue(RecordedCall call, ErrorHandling mode, boolean propagates) {
    OperationTimeoutException cause =
        new OperationTimeoutException(
            "watchdog of rank "
                + context.rank()
                + ": "
                + call.name()
                + " (seq "
                + call.sequenceNumber()
                + ") in group '"
                + call.groupName()
                + "' is under way for "
                + call.ageNanos() / 1_000_000
                + " ms; its timeout is "
                + call.timeoutMillis()
                + " ms, and nobody awaits it");
    LOG.error("{}", cause.getMessage());
    report(call.groupName(), call.groupRanks(), cause);
    handle(cause, mode, propagates);
  }

  /** An operation has failed that nobody awaits. */
  void unattended(Throwable cause) {
    LOG.error("{}", cause.getMessage());
    handle(
        cause, ErrorHandling.fromEnvironment(environment), ErrorHandling.propagates(environment));
  }

  private void handle(Throwable cause, ErrorHandling mode, boolean propagates) {
    dump(cause);
    if (mode.aborts(TearDown.endsProcess())) {
      context.groups().abortAll(cause);
      awaitEnds();
    }
    if (mode.tearsDown()) {
      if (propagates) {
        tellOthers(cause);
      }
      TearDown.run(cause);
    }
  }

  /** Gives the calls that were aborted a moment to end. */
  private void awaitEnds() {
    Deadline deadline = Deadline.after(ABORT_LIMIT);
    while (!deadline.hasPassed()
        && context.flightRecorder().calls().stream().anyMatch(RecordedCall::isActive)) {
      LockSupport.parkNanos(this, 10_000_000);
    }
  }

  private void tellOthers(Throwable cause) {
    if (context.isThreadWorld()) {
      for (RankContext other : localRanks()) {
        if (other != context) {
          other.peerFailed(context.rank(), cause);
        }
      }
      return;
    }
    try {
      FailureNotice unused = FailureNotice.of(context.rank(), cause).publish(briefStore());
    } catch (DistributedException e) {
      LOG.warn("rank {} could not tell the others of its failure", context.rank(), e);
    }
  }

  private Iterable<RankContext> localRanks() {
    return context.shared(LocalRanks.class, LocalRanks::new).all();
  }

  /** A call of a group has failed; the first time, says what is known, and keeps it. */
  void failed(ProcessGroup group, Throwable cause) {
    if (cause instanceof OperationTimeoutException) {
      report(group.name(), group.ranks(), cause);
    }
    dump(cause);
  }

  /** Says once where the ranks of a group are. */
  private void report(String group, List<Integer> ranks, Throwable cause) {
    if (!reported.compareAndSet(false, true)) {
      return;
    }
    try {
      Store store = briefStore();
      if (context.isThreadWorld()) {
        // All are here: what they have not told can be looked up.
        for (RankContext rank : localRanks()) {
          RankStatus.publish(store, rank.rank(), rank.flightRecorder());
        }
      } else if (watching) {
        RankStatus.publish(store, context.rank(), context.flightRecorder()); // not a second old
      }
      String text = RankStatus.report(store, group, ranks);
      LOG.warn("{}", text);
      context.flightRecorder().event("desync", text);
      cause.addSuppressed(new DistributedException(text));
    } catch (RuntimeException e) {
      LOG.warn("rank {} could not ask where the others are", context.rank(), e);
    }
  }
}
