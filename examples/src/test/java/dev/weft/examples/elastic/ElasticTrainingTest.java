package dev.weft.examples.elastic;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.elastic.ElasticOptions;
import dev.weft.examples.AgentRuns;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Training that loses a rank on the way, and ends as if it had not. */
@Timeout(180)
class ElasticTrainingTest {
  private static final int STEPS = 300;
  private static final int EVERY = 25;

  @TempDir private Path folder;
  private final AgentRuns runs = new AgentRuns();

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
    runs.await(Duration.ofSeconds(90), () -> Files.exists(saved) || one.isDone());
    runs.killOne();
    runs.assertEndsWell(one, Duration.ofSeconds(120));
    runs.assertEndsWell(two, Duration.ofSeconds(120));
    List<String> lines = runs.said().lines().toList();
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
    List<String> arguments =
        List.of(folder.resolve("disturbed").toString(), "" + STEPS, "" + EVERY);
    var config = runs.config(ElasticTraining.class, 1, arguments).runId("training").build();
    var options =
        ElasticOptions.of(2, 2, "127.0.0.1", port)
            .withMaxRestarts(1)
            .withJoining(Duration.ofSeconds(60), Duration.ofSeconds(1));
    return runs.start(config, options);
  }

  private static int freePort() throws IOException {
    try (var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }
}
