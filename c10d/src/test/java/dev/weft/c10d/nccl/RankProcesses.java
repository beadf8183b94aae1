package dev.weft.c10d.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.cuda.Cuda;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * A world of processes: one a GPU where there are enough, else with host ids of their own for NCCL,
 * so that they share the GPUs there are.
 */
final class RankProcesses implements AutoCloseable {
  final List<Rank> ranks = new ArrayList<>();

  /** A rank's process and what it says. */
  static final class Rank {
    final Process process;
    private final List<String> lines = new ArrayList<>();
    private final Thread reader;

    private Rank(Process process) {
      this.process = process;
      this.reader = new Thread(this::read);
      reader.start();
    }

    private void read() {
      try (BufferedReader in =
          new BufferedReader(
              new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
        String line;
        while ((line = in.readLine()) != null) {
          synchronized (lines) {
            lines.add(line);
            lines.notifyAll();
          }
        }
      } catch (IOException e) {
        synchronized (lines) {
          lines.add("reading failed: " + e);
        }
      }
    }

    void awaitLine(String text) throws InterruptedException {
      synchronized (lines) {
        while (lines.stream().noneMatch(l -> l.contains(text))) {
          assertThat(process.isAlive()).as("alive before saying '%s': %s", text, lines).isTrue();
          lines.wait(100);
        }
      }
    }

    /** Sends it a signal, such as {@code TERM}; what it says is still read afterwards. */
    void signal(String name) throws IOException, InterruptedException {
      Process kill = new ProcessBuilder("kill", "-" + name, String.valueOf(process.pid())).start();
      assertThat(kill.waitFor()).as("kill -%s %d", name, process.pid()).isZero();
    }

    /** Waits for the end and returns what it said. */
    String end(long seconds) throws InterruptedException {
      boolean ended = process.waitFor(seconds, TimeUnit.SECONDS);
      if (ended) {
        reader.join();
      }
      synchronized (lines) {
        String said = String.join("\n", lines);
        assertThat(ended).as("ended within %d s: %s", seconds, said).isTrue();
        return said;
      }
    }
  }

  /** Starts ranks that do what {@link NcclRank} knows by this name. */
  static RankProcesses start(int size, String what, Map<String, String> environment)
      throws IOException {
    return start(size, NcclRank.class, List.of(what), environment);
  }

  /** Starts ranks with a main class. */
  static RankProcesses start(
      int size, Class<?> main, List<String> arguments, Map<String, String> environment)
      throws IOException {
    RankProcesses world = new RankProcesses();
    int port;
    try (ServerSocket free = new ServerSocket(0)) {
      port = free.getLocalPort();
    }
    for (int r = 0; r < size; r++) {
      List<String> command = new ArrayList<>();
      command.addAll(
          List.of(
              Path.of(System.getProperty("java.home"), "bin", "java").toString(),
              "-Xmx1g",
              "-Dorg.bytedeco.javacpp.cachedir="
                  + System.getProperty(
                      "org.bytedeco.javacpp.cachedir",
                      Path.of(System.getProperty("user.home"), ".javacpp", "cache").toString()),
              "-cp",
              System.getProperty("java.class.path"),
              main.getName()));
      command.addAll(arguments);
      ProcessBuilder builder = new ProcessBuilder(command);
      Map<String, String> env = builder.environment();
      env.put("MASTER_ADDR", "127.0.0.1");
      env.put("MASTER_PORT", String.valueOf(port));
      env.put("RANK", String.valueOf(r));
      env.put("LOCAL_RANK", String.valueOf(r));
      env.put("WORLD_SIZE", String.valueOf(size));
      if (size > Cuda.deviceCount()) {
        env.put("NCCL_HOSTID", "rank" + r);
        env.put("NCCL_SOCKET_IFNAME", "lo");
        env.put("NCCL_IB_DISABLE", "1");
      }
      env.put("NCCL_NVLS_ENABLE", "0");
      env.putAll(environment);
      world.ranks.add(new Rank(builder.redirectErrorStream(true).start()));
    }
    return world;
  }

  /** Runs ranks to their good end. */
  static List<String> run(int size, String what, Map<String, String> environment)
      throws IOException, InterruptedException {
    List<String> said = new ArrayList<>();
    try (RankProcesses world = start(size, what, environment)) {
      for (Rank r : world.ranks) {
        said.add(r.end(150));
      }
      for (int i = 0; i < size; i++) {
        assertThat(said.get(i)).as("rank %d of %s", i, what).endsWith("done");
        assertThat(world.ranks.get(i).process.exitValue()).isZero();
      }
    }
    return said;
  }

  @Override
  public void close() {
    ranks.forEach(r -> r.process.destroyForcibly());
  }
}
