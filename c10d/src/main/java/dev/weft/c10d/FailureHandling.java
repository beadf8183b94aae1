package dev.weft.c10d;

import dev.weft.c10d.debug.RankStatus;
import dev.weft.c10d.debug.RecordedCall;
import dev.weft.c10d.debug.Watchdog;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a rank does about calls that fail, or should have: dumps, a desync report, the end of all
 * groups. Thread-safe.
 */
final class FailureHandling {
  private static final Logger LOG = LoggerFactory.getLogger(FailureHandling.class);
  private static final Duration STORE_LIMIT = Duration.ofSeconds(2);

  private final RankContext context;
  private final AtomicBoolean reported = new AtomicBoolean();

  FailureHandling(RankContext context) {
    this.context = context;
  }

  /** Starts the watchdog, once; ranks that are threads of one program are watched by it. */
  void watch() {
    if (context.isThreadWorld() || context.worldSize() == 1) {
      return;
    }
    Watchdog unused = context.resource(Watchdog.class, this::start);
  }

  private Watchdog start() {
    ErrorHandling mode = ErrorHandling.fromEnvironment(System.getenv());
    Watchdog watchdog =
        new Watchdog(
            context.rank(),
            context.flightRecorder(),
            Watchdog.Config.fromEnvironment(System.getenv()),
            this::tellStatus,
            call -> overdue(call, mode));
    watchdog.start();
    return watchdog;
  }

  private void tellStatus() {
    RankStatus.publish(
        context.store().withTimeout(STORE_LIMIT), context.rank(), context.flightRecorder());
  }

  private void overdue(RecordedCall call, ErrorHandling mode) {
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
    unattended(cause, mode);
  }

  /** An operation has failed that nobody awaits. */
  void unattended(Throwable cause) {
    unattended(cause, ErrorHandling.fromEnvironment(System.getenv()));
  }

  private void unattended(Throwable cause, ErrorHandling mode) {
    LOG.error("{}", cause.getMessage());
    context.flightRecorder().dumpForFailure(cause, context.isThreadWorld());
    if (mode.aborts()) {
      context.groups().abortAll(cause);
    }
    if (mode.tellsOthers()) {
      try {
        FailureNotice unused =
            FailureNotice.of(context.rank(), cause)
                .publish(context.store().withTimeout(STORE_LIMIT));
      } catch (DistributedException e) {
        LOG.warn("rank {} could not tell the others of its failure", context.rank(), e);
      }
    }
  }

  /** A call of a group has failed; the first time, says what is known, and keeps it. */
  void failed(ProcessGroup group, Throwable cause) {
    if (cause instanceof OperationTimeoutException
        && !context.isThreadWorld()
        && reported.compareAndSet(false, true)) {
      report(group, cause);
    }
    context.flightRecorder().dumpForFailure(cause, context.isThreadWorld());
  }

  private void report(ProcessGroup group, Throwable cause) {
    try {
      String text =
          RankStatus.report(context.store().withTimeout(STORE_LIMIT), group.name(), group.ranks());
      LOG.warn("{}", text);
      context.flightRecorder().event("desync", text);
      cause.addSuppressed(new DistributedException(text));
    } catch (RuntimeException e) {
      LOG.warn("rank {} could not ask where the others are", context.rank(), e);
    }
  }
}
