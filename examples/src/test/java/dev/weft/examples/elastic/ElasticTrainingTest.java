package dev.weft.examples.elastic;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.elastic.ElasticAgent;
import dev.weft.c10d.elastic.ElasticOptions;
import dev.weft.c10d.elastic.LaunchConfig;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Training that loses a rank on the way, and ends as if it had not. */
@Timeout(180)
class ElasticTrainingTest {
  private static final int STEPS = 300;
  private static final int EVERY = 25;

  @TempDir private Path folder;
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();

  @Test
  void aRunThatLosesARankReachesTheLossOfAnUndisturbedOne() throws Exception {
    double undisturbed =
        LocalWorld.call(
                2, rank -> ElasticTraining.train(folder.resolve("undisturbed"), STEPS, EVERY))
            .get(0);

    int port = freePort();
    var one = agent(port);
    var two = agent(port);
    Path saved = folder.resolve("disturbed").resolve("step-%08d".formatted(EVERY));
    await(() -> Files.exists(saved) || one.isDone());
    ProcessHandle victim =
        ProcessHandle.current()
            .children()
            .filter(ProcessHandle::isAlive)
            .findFirst()
            .orElseThrow(() -> new AssertionError("no rank is running:\n" + out.toString(UTF_8)));
    assertThat(victim.destroyForcibly()).isTrue(); // kill -9

    String said = "what the run said:\n";
    assertThat(one.get(120, TimeUnit.SECONDS)).as(said + out.toString(UTF_8)).isZero();
    assertThat(two.get(120, TimeUnit.SECONDS)).as(said + out.toString(UTF_8)).isZero();
    List<String> lines = out.toString(UTF_8).lines().toList();
    assertThat(lines).anyMatch(line -> line.contains("exit code 137 (SIGKILL)"));
    assertThat(lines).anyMatch(line -> line.matches("\\[0:0]\\| resumed after step \\d+"));
    double loss =
        lines.stream()
            .filter(line -> line.startsWith("[0:0]| done: loss "))
            .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1)))
            .findFirst()
            .orElseThrow();
    assertThat(loss).isCloseTo(undisturbed, within(1e-5 * Math.abs(undisturbed) + 1e-6));
  }

  private CompletableFuture<Integer> agent(int port) {
    var config =
        LaunchConfig.of(ElasticTraining.class.getName(), 1)
            .arguments(
                List.of(
                    folder.resolve("disturbed").toString(),
                    Integer.toString(STEPS),
                    Integer.toString(EVERY)))
            .jvmArguments(List.of("-Xmx256m"))
            .environment(Map.of("OMP_NUM_THREADS", "1"))
            .noticePeriod(Duration.ofSeconds(1))
            .runId("training")
            .output(out, out)
            .build();
    var options =
        ElasticOptions.of(2, 2, "127.0.0.1", port)
            .withMaxRestarts(1)
            .withJoining(Duration.ofSeconds(60), Duration.ofSeconds(1));
    return CompletableFuture.supplyAsync(
        () -> ElasticAgent.run(config, options), work -> new Thread(work, "agent").start());
  }

  private static int freePort() throws IOException {
    try (var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  private interface Condition {
    boolean holds();
  }

  private void await(Condition condition) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
    while (!condition.holds()) {
      assertThat(System.nanoTime()).as(out.toString(UTF_8)).isLessThan(end);
      Thread.sleep(2);
    }
  }
}
