package dev.weft.c10d.elastic;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.weft.c10d.FailureNotice;
import dev.weft.c10d.store.PrefixStore;
import dev.weft.c10d.store.Store;
import dev.weft.c10d.store.TcpStore;
import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs all ranks of a world on this machine, one process each, and hosts the store through which
 * they meet. The calling thread waits for them. When one fails, the others are told, and ended if
 * they do not end themselves; nothing is left running, whether the launcher returns, is
 * interrupted, or gets SIGINT or SIGTERM. Ranks whose launcher was killed end themselves.
 */
public final class LocalLauncher {
  private static final Logger log = LoggerFactory.getLogger(LocalLauncher.class);
  private static final Duration POLL = Duration.ofMillis(500);

  /** How far apart the ends of processes may be seen in the wrong order. */
  private static final Duration SETTLE = Duration.ofMillis(50);

  private static final int STOPPED = 143;

  private final LaunchConfig config;
  private final Store attempt;
  private final WorkerGroup group;
  private volatile boolean stopping;

  private LocalLauncher(LaunchConfig config, Store attempt, WorkerGroup group) {
    this.config = config;
    this.attempt = attempt;
    this.group = group;
  }

  /**
   * Starts the ranks and waits for them.
   *
   * @param config what to start
   * @return 0 if all ranks ended with 0, else the exit code of the first that failed
   * @throws dev.weft.c10d.StoreException if the store cannot listen at its address
   * @throws dev.weft.c10d.DistributedException if a process cannot be started
   */
  public static int run(LaunchConfig config) {
    try (var store =
            TcpStore.at(config.masterAddress(), config.masterPort())
                .server(true)
                .waitForWorkers(false)
                .open();
        var files = RankFiles.of(config.logs(), 0)) {
      var place =
          new RankEnvironment(
              0,
              1,
              config.nprocPerNode(),
              config.masterAddress(),
              store.port(),
              config.runId(),
              0,
              0);
      var group = WorkerGroup.start(config, place, files, () -> {});
      var attempt = new PrefixStore(RankEnvironment.attemptPrefix("0"), store);
      var launcher = new LocalLauncher(config, attempt, group);
      var hook = new Thread(launcher::stop, "weft-launcher-stop");
      boolean hooked = Hooks.add(hook);
      try {
        return launcher.supervise();
      } finally {
        group.stop();
        if (hooked) {
          Hooks.remove(hook);
        }
      }
    }
  }

  /** Ends the ranks because this process is to end, which is no failure of theirs. */
  private void stop() {
    stopping = true;
    group.stop();
  }

  private int supervise() {
    int running = config.nprocPerNode();
    try {
      while (running > 0) {
        Worker ended = group.nextEnded(POLL);
        if (ended == null) {
          if (FailureNotice.read(attempt).isPresent()) {
            return fail(null);
          }
        } else if (ended.exitCode() == 0) {
          running--;
        } else {
          return fail(ended);
        }
      }
      return 0;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return STOPPED;
    }
  }

  /** Ends the world after a first failure: a process that ended, or a rank's own notice. */
  private int fail(@Nullable Worker ended) throws InterruptedException {
    if (stopping) {
      group.stop(); // returns when the other call has
      return STOPPED;
    }
    var failed = new ArrayList<Worker>();
    if (ended != null) {
      failed.add(ended);
    }
    for (Worker next = group.nextEnded(SETTLE); next != null; next = group.nextEnded(SETTLE)) {
      if (next.exitCode() != 0) {
        failed.add(next);
      }
    }
    Optional<FailureNotice> told = FailureNotice.read(attempt);
    Worker first =
        told.flatMap(notice -> workerOf(notice.rank()))
            .or(() -> failed.stream().filter(Worker::wasKilled).findFirst())
            .or(() -> Optional.ofNullable(ended))
            .orElseThrow(
                () ->
                    new IllegalStateException(
                        "a failure notice of a rank that is not here: " + told));
    var notice =
        told.orElseGet(
            () ->
                new FailureNotice(first.rank(), "its process ended with " + first.ending(), "")
                    .publish(attempt));
    group.awaitAll(config.noticePeriod());
    group.stop();
    report(first, notice);
    return first.exitCode() > 0 ? first.exitCode() : 1;
  }

  private Optional<Worker> workerOf(int rank) {
    return group.workers().stream().filter(worker -> worker.rank() == rank).findFirst();
  }

  /** Says what failed, the most important last: it is what stands on the screen at the end. */
  private void report(Worker first, FailureNotice notice) {
    var lines = new ArrayList<String>();
    var last = first.lastErrorLines();
    if (last.isEmpty()) {
      lines.add("weft: rank " + first.rank() + " wrote nothing to its standard error");
    } else {
      lines.add("weft: the end of the standard error of rank " + first.rank() + ":");
      last.forEach(line -> lines.add("    " + line));
    }
    var others = new ArrayList<String>();
    for (Worker worker : group.workers()) {
      if (worker != first) {
        others.add(worker.rank() + ": " + worker.ending());
      }
    }
    if (!others.isEmpty()) {
      lines.add("weft: the other ranks have ended: " + String.join(", ", others));
    }
    lines.add(
        "weft: rank %d of %d failed first: %s, pid %d"
            .formatted(first.rank(), config.nprocPerNode(), first.ending(), first.pid()));
    if (!notice.trace().isEmpty()) {
      lines.add("    " + notice.reason());
      notice.trace().lines().forEach(frame -> lines.add("        " + frame));
    }
    write(config.err(), lines);
  }

  private static void write(OutputStream target, List<String> lines) {
    byte[] text = (String.join("\n", lines) + "\n").getBytes(UTF_8);
    synchronized (target) {
      try {
        target.write(text);
        target.flush();
      } catch (IOException e) {
        log.warn("the launcher's output is closed; it was to say: {}", lines, e);
      }
    }
  }
}
