package dev.weft.c10d.elastic;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableSet;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.RunStatus;
import dev.weft.c10d.metrics.StatusFile;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What the live view of a run shows whose ranks are started again. */
@Timeout(120)
class LiveRestartTest {
  @TempDir private Path folder;

  /** Rank 1 reports a step and is killed once; rank 0 waits, and is stopped with it. */
  static final class FailsOnce {
    private FailsOnce() {}

    /** Runs it. */
    public static void main(String[] args) throws Exception {
      int rank = Integer.parseInt(System.getenv("RANK"));
      boolean first = System.getenv("TORCHELASTIC_RESTART_COUNT").equals("0");
      try (var world = Distributed.init()) {
        RunStatus.report(first ? 7 : 9, 1.5, 100);
        while (!Files.exists(Path.of(System.getenv(StatusFile.VARIABLE)))) {
          Thread.sleep(10); // it is written a while after the report
        }
        Distributed.barrier().await();
        if (first && rank == 1) {
          ElasticRanks.killSelf();
        } else if (first) {
          Ranks.sleep();
        }
        Distributed.barrier().await();
      }
    }
  }

  @Test
  void eachAttemptHasABlockOfItsOwnThatStays() throws IOException {
    ByteArrayOutputStream terminal = new ByteArrayOutputStream();
    LaunchConfig config =
        LaunchConfig.of(FailsOnce.class.getName(), 2)
            .jvmArguments(List.of("-Xmx128m", "-XX:TieredStopAtLevel=1"))
            .noticePeriod(Duration.ofMillis(200))
            .gracePeriod(Duration.ofSeconds(5))
            .logs(new LogOptions(Files.createDirectories(folder), false, ImmutableSet.of()))
            .live(new LiveScreen(terminal, terminal))
            .build();
    int code =
        ElasticAgent.run(
            config, ElasticOptions.of(1, 1, "127.0.0.1", freePort()).withMaxRestarts(3));
    String all = terminal.toString(UTF_8);
    assertThat(code).as(all).isZero();

    List<String> rows = LiveScreenTest.shown(all);
    String screen = String.join("\n", rows);
    int first = index(rows, "LiveRestartTest$FailsOnce on 2 ranks  0:");
    assertThat(rows.get(first + 2)).as(screen).matches(" +0  stopped +7 +1\\.5000 .*");
    assertThat(rows.get(first + 3)).as(screen).matches(" +1  exit code 137 \\(SIGKILL\\) +7 .*");
    int second = index(rows, "LiveRestartTest$FailsOnce on 2 ranks, restart 1 of 3  0:");
    assertThat(second).as(screen).isGreaterThan(first + 3);
    assertThat(rows.get(second + 2)).as(screen).matches(" +0  done +9 .*");
    assertThat(rows.get(second + 3)).as(screen).matches(" +1  done +9 .*");
    assertThat(String.join("\n", rows.subList(first + 4, second)))
        .as(screen)
        .contains("attempt 1 (rank 1 (node 0) failed: exit code 137 (SIGKILL))");
  }

  private static int index(List<String> rows, String start) {
    List<Integer> found = new ArrayList<>();
    for (int i = 0; i < rows.size(); i++) {
      if (rows.get(i).startsWith(start)) {
        found.add(i);
      }
    }
    assertThat(found).as("'%s' in\n%s", start, String.join("\n", rows)).hasSize(1);
    return found.get(0);
  }

  private static int freePort() throws IOException {
    try (var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }
}
