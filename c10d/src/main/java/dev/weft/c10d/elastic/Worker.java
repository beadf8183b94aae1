package dev.weft.c10d.elastic;

import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One rank's process, with what it started in turn. Thread-safe. The process leads a group of its
 * own where the machine has {@code setsid}, so that its descendants can be ended also when it is
 * dead already.
 */
final class Worker {
  private static final Logger log = LoggerFactory.getLogger(Worker.class);
  private static final int REMEMBERED_LINES = 20;
  private static final int SIGNALLED = 128;
  private static final Map<Integer, String> SIGNALS =
      Map.of(
          1, "SIGHUP", 2, "SIGINT", 3, "SIGQUIT", 4, "SIGILL", 6, "SIGABRT", 7, "SIGBUS", 8,
          "SIGFPE", 9, "SIGKILL", 11, "SIGSEGV", 15, "SIGTERM");

  private final int rank;
  private final Process process;
  private final boolean ownGroup;
  private final LinePump err;
  private final List<Thread> pumps;
  private final Set<ProcessHandle> descendants = ConcurrentHashMap.newKeySet();
  private volatile boolean asked;

  /**
   * Where the output of a rank goes.
   *
   * @param out where its standard output is shown
   * @param err where its standard error is shown
   * @param prefix what is put before each line there
   * @param outFile the log of its standard output
   * @param errFile the log of its standard error
   */
  record Output(
      OutputStream out, OutputStream err, String prefix, OutputStream outFile, OutputStream errFile)
      implements AutoCloseable {
    /** Closes the logs, which the worker does once it has started. */
    @Override
    public void close() throws IOException {
      outFile.close();
      errFile.close();
    }
  }

  private Worker(int rank, Process process, boolean ownGroup, Output output) {
    this.rank = rank;
    this.process = process;
    this.ownGroup = ownGroup;
    var out =
        new LinePump(process.getInputStream(), output.out(), output.prefix(), 0, output.outFile());
    this.err =
        new LinePump(
            process.getErrorStream(),
            output.err(),
            output.prefix(),
            REMEMBERED_LINES,
            output.errFile());
    this.pumps = List.of(new Thread(out, "weft-out-" + rank), new Thread(err, "weft-err-" + rank));
    for (Thread pump : pumps) {
      pump.setDaemon(true);
      pump.start();
    }
  }

  /**
   * Starts the process of a rank. Its standard input is a pipe that stays open as long as this
   * process lives.
   */
  static Worker start(
      int rank, List<String> command, Map<String, String> environment, Output output)
      throws IOException {
    boolean ownGroup = ProcessGroups.available();
    var builder = new ProcessBuilder(ownGroup ? ProcessGroups.leading(command) : command);
    builder.environment().putAll(environment);
    if (ownGroup) {
      builder.environment().put(RankEnvironment.OWN_GROUP, "1");
    }
    return new Worker(rank, builder.start(), ownGroup, output);
  }

  int rank() {
    return rank;
  }

  long pid() {
    return process.pid();
  }

  boolean isAlive() {
    return process.isAlive();
  }

  /**
   * The exit code, 128 and the signal's number where a signal ended it; -1 for a process that
   * cannot be ended.
   */
  int exitCode() {
    return process.isAlive() ? -1 : process.exitValue();
  }

  CompletableFuture<Process> onExit() {
    return process.onExit();
  }

  /** Says how the process ended. */
  String ending() {
    if (process.isAlive()) {
      return "still alive, pid " + pid();
    }
    int code = exitCode();
    String signal = SIGNALS.get(code - SIGNALLED);
    return signal == null ? "exit code " + code : "exit code " + code + " (" + signal + ")";
  }

  /** Whether a signal that nobody handled ended it, which no failure of a peer brings about. */
  boolean wasKilled() {
    int code = exitCode();
    return code > SIGNALLED && SIGNALS.containsKey(code - SIGNALLED) && code != SIGNALLED + 15;
  }

  /** Whether it ended by the signals of {@link #terminate} and {@link #kill}. */
  boolean wasStopped() {
    int code = exitCode();
    return asked && (code == SIGNALLED + 15 || code == SIGNALLED + 9);
  }

  List<String> lastErrorLines() {
    return err.lastLines();
  }

  /** Waits for the end of the process; says whether it came. */
  boolean awaitEnd(Duration timeout) {
    try {
      return process.waitFor(timeout.toNanos(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** Asks the process and its descendants to end. */
  void terminate() {
    asked = true;
    process.descendants().forEach(descendants::add);
    if (ownGroup) {
      ProcessGroups.signal(process.pid(), "TERM");
    } else {
      process.destroy();
      descendants.forEach(ProcessHandle::destroy);
    }
  }

  /** Ends the process and its descendants. */
  void kill() {
    process.descendants().forEach(descendants::add);
    if (ownGroup) {
      ProcessGroups.signal(process.pid(), "KILL");
    }
    process.destroyForcibly();
    descendants.forEach(ProcessHandle::destroyForcibly);
  }

  /**
   * Waits for the rest of the output, which is complete unless a descendant keeps the pipes open.
   */
  void drain(Duration timeout) {
    long end = System.nanoTime() + timeout.toNanos();
    try {
      for (Thread pump : pumps) {
        pump.join(Math.max(1, TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime())));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      log.debug("interrupted while reading the last output of rank {}", rank);
    }
  }
}
