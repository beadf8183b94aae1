package dev.weft.examples.trainer;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.c10d.elastic.ElasticAgent;
import dev.weft.c10d.elastic.ElasticOptions;
import dev.weft.c10d.elastic.LaunchConfig;
import dev.weft.examples.reference.GoldenRun;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A run of processes that loses one, and ends as if it had not. */
@Timeout(240)
class TrainRestartTest {
  private static final int STEPS = 60;

  @TempDir private Path folder;
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();

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
    await(() -> Files.exists(saved) || agent.isDone());
    ProcessHandle victim =
        ProcessHandle.current()
            .children()
            .filter(ProcessHandle::isAlive)
            .findAny()
            .orElseThrow(() -> new AssertionError("no rank is running:\n" + out.toString(UTF_8)));
    assertThat(victim.destroyForcibly()).isTrue(); // kill -9

    String said = "what the run said:\n";
    assertThat(agent.get(180, TimeUnit.SECONDS)).as(said + out.toString(UTF_8)).isZero();
    List<String> lines = out.toString(UTF_8).lines().toList();
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
    var config =
        LaunchConfig.of(Train.class.getName(), 2)
            .arguments(arguments(to))
            .jvmArguments(List.of("-Xmx256m"))
            .environment(Map.of("OMP_NUM_THREADS", "1"))
            .noticePeriod(Duration.ofSeconds(1))
            .output(out, out)
            .build();
    var options = ElasticOptions.of(1, 1, "127.0.0.1", 0).withMaxRestarts(1);
    return CompletableFuture.supplyAsync(
        () -> ElasticAgent.run(config, options), work -> new Thread(work, "agent").start());
  }

  private interface Condition {
    boolean holds();
  }

  private void await(Condition condition) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
    while (!condition.holds()) {
      assertThat(System.nanoTime()).as(out.toString(UTF_8)).isLessThan(end);
      Thread.sleep(2);
    }
  }
}
