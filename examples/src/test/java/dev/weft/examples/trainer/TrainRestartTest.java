package dev.weft.examples.trainer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.c10d.elastic.ElasticOptions;
import dev.weft.examples.AgentRuns;
import dev.weft.examples.reference.GoldenRun;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A run of processes that loses one, and ends as if it had not. */
@Timeout(240)
class TrainRestartTest {
  private static final int STEPS = 60;

  @TempDir private Path folder;
  private final AgentRuns runs = new AgentRuns();

  private List<String> arguments(Path to) {
    List<String> all = new ArrayList<>(List.of("--mesh", "pp=2", "--out", to.toString()));
    all.addAll(List.of("--steps", "" + STEPS, "--checkpoint-every", "15", "--seq", "16"));
    all.addAll(List.of("--batch", "4", "--microbatches", "2", "--eval-batches", "2"));
    return all;
  }

  @Test
  void aRunThatLosesARankReachesTheLossOfAnUndisturbedOne() throws Exception {
    List<LossRow> undisturbed =
        Train.inProcess(
            TrainOptions.parse(arguments(folder.resolve("quiet")).toArray(String[]::new)),
            new PrintStream(OutputStream.nullOutputStream()));

    Path to = folder.resolve("disturbed");
    CompletableFuture<Integer> agent = agent(to);
    Path saved = to.resolve("checkpoints").resolve("step-00000015");
    runs.await(Duration.ofSeconds(120), () -> Files.exists(saved) || agent.isDone());
    runs.killOne();
    runs.assertEndsWell(agent, Duration.ofSeconds(180));
    List<String> lines = runs.said().lines().toList();
    assertThat(lines).anyMatch(line -> line.contains("exit code 137 (SIGKILL)"));
    assertThat(lines).anyMatch(line -> line.matches(".*resumed after step \\d+, sample \\d+"));

    List<LossRow> rows =
        Files.readAllLines(to.resolve("losses.csv")).stream().skip(1).map(LossRow::parse).toList();
    assertThat(rows).extracting(LossRow::tokens).isEqualTo(tokens(undisturbed));
    Factorizations.Difference difference = Factorizations.Difference.of(rows, undisturbed);
    assertThat(difference.loss()).isLessThan(GoldenRun.TOLERANCE);
    assertThat(difference.gradNorm()).isLessThan(GoldenRun.TOLERANCE);
    assertThat(rows.get(STEPS - 1).evalLoss()).isNotNull();
    assertThat(to.resolve("report.html")).content().contains("of 60");
  }

  private static List<Long> tokens(List<LossRow> rows) {
    return rows.stream().map(LossRow::tokens).toList();
  }

  private CompletableFuture<Integer> agent(Path to) {
    var config = runs.config(Train.class, 2, arguments(to)).build();
    var options = ElasticOptions.of(1, 1, "127.0.0.1", 0).withMaxRestarts(1);
    return runs.start(config, options);
  }
}
