package dev.weft.c10d.elastic;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.FailureNotice;
import dev.weft.c10d.TearDown;
import dev.weft.c10d.store.PrefixStore;
import dev.weft.c10d.store.TcpStore;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;

/**
 * What the launcher runs in each rank: the user's main class, with the launcher's end watched on a
 * daemon thread. An exception that the user's {@code main} throws is told to the other ranks, and
 * ends the process with code 1 even if other threads still run.
 */
public final class RankMain {
  private static final Duration PUBLISH_TIMEOUT = Duration.ofSeconds(4);
  private static final int LAUNCHER_GONE = 143;

  private RankMain() {}

  /**
   * Runs a main class.
   *
   * @param args the name of the class, then its arguments
   */
  public static void main(String[] args) {
    if (args.length == 0) {
      throw new IllegalArgumentException(
          "no arguments; expected the name of a main class and its arguments");
    }
    Map<String, String> environment = System.getenv();
    if ("1".equals(environment.get(RankEnvironment.LAUNCHED))) {
      watchLauncher(System.in, "1".equals(environment.get(RankEnvironment.OWN_GROUP)));
      System.setIn(InputStream.nullInputStream());
    }
    TearDown.endProcessBy(cause -> endBy(cause, environment));
    try {
      mainOf(args[0]).invoke(null, (Object) Arrays.copyOfRange(args, 1, args.length));
    } catch (InvocationTargetException e) {
      fail(e.getCause() == null ? e : e.getCause(), environment);
    } catch (ReflectiveOperationException | LinkageError e) {
      fail(e, environment);
    }
  }

  private static Method mainOf(String name) throws ReflectiveOperationException {
    Method main =
        Class.forName(name, false, ClassLoader.getSystemClassLoader())
            .getMethod("main", String[].class);
    if (!Modifier.isStatic(main.getModifiers())) {
      throw new NoSuchMethodException(name + ".main is not static");
    }
    main.setAccessible(true); // the class itself need not be public
    return main;
  }

  @SuppressWarnings("SystemExitOutsideMain") // this stands for the end of main
  private static void fail(Throwable failure, Map<String, String> environment) {
    System.err.print("Exception in thread \"main\" ");
    failure.printStackTrace();
    writeErrorFile(failure, environment);
    // What follows from another rank's failure is not the first cause.
    if (!(failure instanceof DistributedException)
        && environment.containsKey(RankEnvironment.LAUNCHED)) {
      publish(failure, environment);
    }
    System.err.flush();
    System.exit(1);
  }

  /** The rank's watchdog ends the process, which may hang in any of its threads. */
  private static void endBy(Throwable cause, Map<String, String> environment) {
    System.err.println("weft: this rank cannot go on and ends: " + cause);
    writeErrorFile(cause, environment);
    System.err.flush();
    System.out.flush();
    Runtime.getRuntime().halt(1);
  }

  private static void writeErrorFile(Throwable failure, Map<String, String> environment) {
    String file = environment.getOrDefault(ErrorFile.VARIABLE, "");
    if (file.isEmpty()) {
      return;
    }
    try {
      ErrorFile.write(Path.of(file), failure);
    } catch (IOException e) {
      System.err.println("weft: " + ErrorFile.VARIABLE + " '" + file + "' cannot be written: " + e);
    }
  }

  private static void publish(Throwable failure, Map<String, String> environment) {
    try (var store =
        TcpStore.at(
                environment.getOrDefault("MASTER_ADDR", ""),
                Integer.parseInt(environment.getOrDefault("MASTER_PORT", "")))
            .waitForWorkers(false)
            .timeout(Deadline.after(PUBLISH_TIMEOUT).timeout())
            .open()) {
      String restarts = environment.getOrDefault(RankEnvironment.RESTART_COUNT, "0");
      FailureNotice.of(Integer.parseInt(environment.getOrDefault("RANK", "")), failure)
          .publish(new PrefixStore(RankEnvironment.attemptPrefix(restarts), store));
    } catch (DistributedException | IllegalArgumentException e) {
      System.err.println(
          "weft: the other ranks could not be told of this failure: " + e.getMessage());
    }
  }

  /** The launcher writes nothing to this pipe; it ends when the launcher does. */
  private static void watchLauncher(InputStream pipe, boolean ownGroup) {
    var watch =
        new Thread(
            () -> {
              try {
                while (pipe.read() >= 0) {}
              } catch (IOException e) {
                System.err.println("weft: the pipe from the launcher broke: " + e.getMessage());
              }
              endWithLauncher(ownGroup);
            },
            "weft-launcher-watch");
    watch.setDaemon(true);
    watch.start();
  }

  private static void endWithLauncher(boolean ownGroup) {
    System.err.println("weft: the launcher is gone, this rank ends");
    ProcessHandle.current().descendants().forEach(ProcessHandle::destroyForcibly);
    if (ownGroup) {
      ProcessGroups.signal(ProcessHandle.current().pid(), "KILL");
    }
    Runtime.getRuntime().halt(LAUNCHER_GONE);
  }
}
