package dev.weft.c10d.elastic;

import dev.weft.c10d.DistributedException;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Runs all ranks of a world through {@code mpirun}, whose MPI the ranks' {@code mpi} backend finds
 * itself a part of. The calling thread waits for them; their output is this process's own, and who
 * failed is told by mpirun. Nothing is left running when the launcher ends.
 */
public final class MpirunLauncher {
  /** Names the program that starts the processes, instead of {@code mpirun} on the path. */
  public static final String VARIABLE = "WEFT_MPIRUN";

  private static final int STOPPED = 143;

  private MpirunLauncher() {}

  /**
   * Starts the ranks and waits for them.
   *
   * @param config what to start
   * @param options further arguments of mpirun, such as {@code --hostfile}
   * @return mpirun's exit code
   * @throws DistributedException if mpirun cannot be started
   */
  public static int run(LaunchConfig config, List<String> options) {
    List<String> command = command(config, options, System.getenv(VARIABLE));
    Process process;
    try {
      process = new ProcessBuilder(command).inheritIO().start();
    } catch (IOException e) {
      throw new DistributedException(
          "'"
              + command.get(0)
              + "' cannot be started ("
              + e.getMessage()
              + "); install Open MPI (Debian, Ubuntu: apt-get install openmpi-bin) or MPICH"
              + " (apt-get install mpich), or set "
              + VARIABLE
              + " to its mpirun",
          e);
    }
    var hook = new Thread(() -> stop(process, config.gracePeriod()), "weft-launcher-stop");
    boolean hooked = Hooks.add(hook);
    try {
      return process.waitFor();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return STOPPED;
    } finally {
      stop(process, config.gracePeriod());
      if (hooked) {
        Hooks.remove(hook);
      }
    }
  }

  static List<String> command(LaunchConfig config, List<String> options, @Nullable String named) {
    var command = new ArrayList<String>();
    command.add(named == null || named.isBlank() ? "mpirun" : named.trim());
    command.add("-n");
    command.add(String.valueOf(config.nprocPerNode()));
    command.addAll(options);
    command.add("env"); // Open MPI's mpirun changes the arguments of a program that is called java
    command.addAll(WorkerGroup.command(config));
    return command;
  }

  /** mpirun ends its processes when it is told to end. */
  private static void stop(Process process, Duration grace) {
    if (!process.isAlive()) {
      return;
    }
    List<ProcessHandle> all = process.descendants().toList();
    process.destroy();
    boolean ended = false;
    try {
      ended = process.waitFor(grace.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (!ended) {
      Process unused = process.destroyForcibly();
      all.forEach(ProcessHandle::destroyForcibly);
    }
  }
}
