package dev.weft.c10d.elastic;

import dev.weft.c10d.FailureNotice;
import dev.weft.c10d.StoreException;
import dev.weft.c10d.store.PrefixStore;
import dev.weft.c10d.store.Store;
import dev.weft.c10d.store.TcpStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One round of a run on this machine: its ranks, and its end of the store that the ranks share.
 * Used by the agent's thread; {@link #stop} may come from any.
 */
final class Attempt implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Attempt.class);

  /** How far apart the ends of processes may be seen in the wrong order. */
  private static final Duration SETTLE = Duration.ofMillis(50);

  private static final Duration LAST_OUTPUT = Duration.ofSeconds(1);

  private final int round;
  private final int node;
  private final LaunchConfig config;
  private final String host;
  private final TcpStore ranksStore;
  private final Store attempt;
  private final RankFiles files;
  private final WorkerGroup group;
  private final List<Worker> failed = new ArrayList<>();
  private int running;
  private @Nullable FirstFailure failure;

  private Attempt(
      LaunchConfig config,
      RunState state,
      int node,
      String host,
      TcpStore ranksStore,
      RankFiles files,
      WorkerGroup group) {
    this.config = config;
    this.round = state.round();
    this.node = node;
    this.host = host;
    this.ranksStore = ranksStore;
    this.attempt =
        new PrefixStore(
            RankEnvironment.attemptPrefix(Integer.toString(state.restarts())), ranksStore);
    this.files = files;
    this.group = group;
    this.running = config.nprocPerNode();
  }

  /**
   * Starts this machine's ranks.
   *
   * @param ranksStore the store of the ranks, closed with this attempt
   * @param onEnd called whenever a rank ends
   */
  static Attempt start(
      LaunchConfig config,
      RunState state,
      int node,
      String host,
      String masterAddress,
      TcpStore ranksStore,
      Runnable onEnd) {
    var place =
        new RankEnvironment(
            node,
            state.members().size(),
            config.nprocPerNode(),
            masterAddress,
            ranksStore.port(),
            config.runId(),
            state.restarts(),
            state.settings().maxRestarts());
    var files = RankFiles.of(config.logs(), state.round());
    boolean done = false;
    try {
      var group = WorkerGroup.start(config, place, files, onEnd);
      done = true;
      return new Attempt(config, state, node, host, ranksStore, files, group);
    } finally {
      if (!done) {
        files.close();
      }
    }
  }

  int round() {
    return round;
  }

  /** Whether all ranks of this machine ended well. */
  boolean isFinished() throws InterruptedException {
    collect(Duration.ZERO);
    return running == 0 && failed.isEmpty();
  }

  private void collect(Duration timeout) throws InterruptedException {
    for (Worker next = group.nextEnded(timeout); next != null; next = group.nextEnded(timeout)) {
      running--;
      if (next.exitCode() != 0) {
        failed.add(next);
      }
    }
  }

  /** The failure of a rank of this machine, if there is one; always the same one. */
  Optional<FirstFailure> failure() throws InterruptedException {
    if (failure != null) {
      return Optional.of(failure);
    }
    collect(Duration.ZERO);
    Optional<Worker> told = notice().flatMap(notice -> workerOf(notice.rank()));
    if (failed.isEmpty() && told.isEmpty()) {
      return Optional.empty();
    }
    collect(SETTLE);
    told = notice().flatMap(notice -> workerOf(notice.rank()));
    Worker first =
        told.or(() -> failed.stream().filter(Worker::wasKilled).findFirst())
            .orElseGet(() -> failed.get(0));
    failure = describe(first);
    if (failure.primary() && told.isEmpty()) {
      publish(first);
    }
    return Optional.of(failure);
  }

  private Optional<Worker> workerOf(int rank) {
    return group.workers().stream().filter(worker -> worker.rank() == rank).findFirst();
  }

  private Optional<FailureNotice> notice() {
    try {
      return FailureNotice.read(attempt);
    } catch (StoreException e) {
      log.debug("the ranks' store does not answer", e); // its agent's heartbeat tells if it is gone
      return Optional.empty();
    }
  }

  private void publish(Worker first) {
    try {
      FailureNotice unused =
          new FailureNotice(first.rank(), "its process ended with " + first.ending(), "")
              .publish(attempt);
    } catch (StoreException e) {
      log.info("the ranks could not be told that rank {} failed", first.rank(), e);
    }
  }

  private FirstFailure describe(Worker first) {
    first.awaitEnd(config.noticePeriod()); // one that told of its failure may still be at it
    first.drain(LAST_OUTPUT);
    Optional<ErrorFile> written = group.errorOf(first);
    Optional<FailureNotice> told = notice().filter(notice -> notice.rank() == first.rank());
    return new FirstFailure(
        round,
        first.rank(),
        node,
        host,
        first.pid(),
        first.exitCode(),
        first.ending(),
        written.map(ErrorFile::message).or(() -> told.map(FailureNotice::reason)).orElse(""),
        written.map(ErrorFile::trace).or(() -> told.map(FailureNotice::trace)).orElse(""),
        first.lastErrorLines(),
        told.isPresent() || written.isEmpty() || !written.get().follows());
  }

  /** Gives ranks the time to notice a failure, and to say so. */
  void awaitNotice() {
    boolean unused = group.awaitAll(config.noticePeriod());
  }

  /** Ends the ranks, those that do not listen after the grace period. */
  void stop() {
    group.stop();
  }

  @Override
  public void close() {
    stop();
    files.close();
    ranksStore.close();
  }
}
