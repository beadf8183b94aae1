package dev.weft.c10d.elastic;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.DistributedException;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The ranks' processes on this machine, which start, fail and end together. Thread-safe. */
final class WorkerGroup {
  private static final Duration DRAIN = Duration.ofSeconds(2);

  private final LaunchConfig config;
  private final List<Worker> workers = new ArrayList<>();
  private final BlockingQueue<Worker> ended = new LinkedBlockingQueue<>();
  private boolean stopped;

  private WorkerGroup(LaunchConfig config) {
    this.config = config;
  }

  /** Starts all ranks of this machine, or none. */
  static WorkerGroup start(LaunchConfig config, RankEnvironment place) {
    var group = new WorkerGroup(config);
    boolean done = false;
    try {
      for (int local = 0; local < config.nprocPerNode(); local++) {
        group.add(place, local);
      }
      done = true;
      return group;
    } catch (IOException e) {
      throw new DistributedException("a rank's process cannot be started: " + e.getMessage(), e);
    } finally {
      if (!done) {
        group.stop();
      }
    }
  }

  private void add(RankEnvironment place, int local) throws IOException {
    var environment = place.of(local);
    environment.putAll(config.environment());
    boolean ompSet =
        System.getenv(RankEnvironment.OMP_NUM_THREADS) != null
            || config.environment().containsKey(RankEnvironment.OMP_NUM_THREADS);
    if (config.nprocPerNode() > 1 && !ompSet) {
      environment.put(RankEnvironment.OMP_NUM_THREADS, "1");
    }
    synchronized (this) {
      if (stopped) {
        throw new DistributedException(
            "the launcher was stopped while it started rank " + place.rank(local));
      }
      var worker = Worker.start(place.rank(local), command(config), environment, config);
      workers.add(worker);
      var unused = worker.onExit().thenRun(() -> ended.add(worker));
    }
  }

  private static List<String> command(LaunchConfig config) {
    String own = System.getProperty("java.class.path");
    var command = new ArrayList<String>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("-Dorg.bytedeco.javacpp.maxphysicalbytes=0");
    command.addAll(config.jvmArguments());
    command.add("-cp");
    command.add(
        config.classPath().isEmpty() ? own : config.classPath() + java.io.File.pathSeparator + own);
    command.add(RankMain.class.getName());
    command.add(config.mainClass());
    command.addAll(config.arguments());
    return command;
  }

  synchronized List<Worker> workers() {
    return List.copyOf(workers);
  }

  /** Waits for the next process to end. */
  @Nullable Worker nextEnded(Duration timeout) throws InterruptedException {
    return ended.poll(timeout.toNanos(), TimeUnit.NANOSECONDS);
  }

  /** Waits until all processes have ended by themselves. */
  boolean awaitAll(Duration timeout) {
    var deadline = Deadline.after(timeout);
    try {
      for (Worker worker : workers()) {
        worker.onExit().get(deadline.remainingNanos(), TimeUnit.NANOSECONDS);
      }
      return true;
    } catch (java.util.concurrent.TimeoutException e) {
      return false;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    } catch (java.util.concurrent.ExecutionException e) {
      throw new IllegalStateException("waiting for a process failed", e);
    }
  }

  /**
   * Ends all processes and what they started: SIGTERM, the grace period, SIGKILL. Then reads their
   * last output. Returns at once when they have been ended before; a second caller waits for the
   * first.
   */
  synchronized void stop() {
    if (stopped) {
      return;
    }
    stopped = true;
    var alive = workers.stream().filter(Worker::isAlive).toList();
    alive.forEach(Worker::terminate);
    if (!alive.isEmpty()) {
      awaitAll(config.gracePeriod());
    }
    // Also for those that have ended: their descendants may be alive.
    workers.forEach(Worker::kill);
    awaitAll(DRAIN);
    workers.forEach(worker -> worker.drain(DRAIN));
  }
}
