package dev.weft.c10d.elastic;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.metrics.StatusFile;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The ranks' processes on this machine, which start, fail and end together. Thread-safe. */
final class WorkerGroup {
  private static final Duration DRAIN = Duration.ofSeconds(2);

  private final LaunchConfig config;
  // Read by the live view, too, which must not wait for who stops the ranks.
  private final List<Worker> workers = new CopyOnWriteArrayList<>();
  private final BlockingQueue<Worker> ended = new LinkedBlockingQueue<>();
  private final RankFiles files;
  private final Runnable onEnd;
  private final LiveView view;
  private boolean stopped;

  private WorkerGroup(LaunchConfig config, RankEnvironment place, RankFiles files, Runnable onEnd) {
    this.config = config;
    this.files = files;
    this.onEnd = onEnd;
    this.view = new LiveView(title(config, place), files, () -> List.copyOf(workers));
  }

  /** What runs, where in the world, and after how many failures. */
  private static String title(LaunchConfig config, RankEnvironment place) {
    String name = config.mainClass();
    StringBuilder title = new StringBuilder(name.substring(name.lastIndexOf('.') + 1));
    title.append(" on ").append(place.nprocPerNode());
    if (place.nodes() > 1) {
      title.append(" of ").append(place.worldSize());
    }
    title.append(" ranks");
    if (place.restarts() > 0) {
      title.append(", restart ").append(place.restarts()).append(" of ");
      title.append(place.maxRestarts());
    }
    return title.toString();
  }

  /**
   * Starts all ranks of this machine, or none.
   *
   * @param onEnd called on some thread whenever a process ends
   */
  static WorkerGroup start(
      LaunchConfig config, RankEnvironment place, RankFiles files, Runnable onEnd) {
    var group = new WorkerGroup(config, place, files, onEnd);
    boolean done = false;
    LiveScreen screen = config.screen();
    if (screen != null) {
      screen.show(group.view);
    }
    if (config.nprocPerNode() > 1) {
      NativeCache.warm();
    }
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
    int rank = place.rank(local);
    var environment = place.of(local);
    environment.put(ErrorFile.VARIABLE, files.errorFile(rank).toString());
    if (config.screen() != null) {
      // A log folder may hold an earlier run's.
      boolean unused = Files.deleteIfExists(files.statusFile(rank));
      environment.put(StatusFile.VARIABLE, files.statusFile(rank).toString());
    }
    if (config.shareGpus()) {
      environment.putAll(RankEnvironment.sharedGpu(rank));
    }
    environment.putAll(config.environment());
    if (config.nprocPerNode() > 1) {
      putIfUnset(environment, RankEnvironment.OMP_NUM_THREADS);
    }
    putIfUnset(environment, RankEnvironment.ASYNC_ERROR_HANDLING);
    synchronized (this) {
      if (stopped) {
        throw new DistributedException("the launcher was stopped while it started rank " + rank);
      }
      var output = output(place, local);
      boolean done = false;
      try {
        var worker = Worker.start(rank, command(config), environment, output);
        done = true;
        workers.add(worker);
        var unused =
            worker
                .onExit()
                .thenRun(
                    () -> {
                      ended.add(worker);
                      onEnd.run();
                    });
      } finally {
        if (!done) {
          output.close();
        }
      }
    }
  }

  private static void putIfUnset(Map<String, String> environment, String name) {
    if (System.getenv(name) == null) {
      environment.putIfAbsent(name, "1");
    }
  }

  private Worker.Output output(RankEnvironment place, int local) throws IOException {
    int rank = place.rank(local);
    boolean shown = config.logs().shows(local);
    return new Worker.Output(
        shown ? config.out() : OutputStream.nullOutputStream(),
        shown ? config.err() : OutputStream.nullOutputStream(),
        config.prefixOutput() ? place.label(local) : "",
        files.open(rank, "stdout.log"),
        files.open(rank, "stderr.log"));
  }

  /** The command of a rank. */
  static List<String> command(LaunchConfig config) {
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

  /** Where a rank says why it failed. */
  Optional<ErrorFile> errorOf(Worker worker) {
    return ErrorFile.read(files.errorFile(worker.rank()));
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
    LiveScreen screen = config.screen();
    if (screen != null) {
      screen.leave(view);
    }
  }
}
