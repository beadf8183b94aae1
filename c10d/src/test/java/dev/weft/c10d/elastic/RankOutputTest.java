package dev.weft.c10d.elastic;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Where the output of ranks goes, and where they say why they failed. */
@Timeout(60)
class RankOutputTest {
  @TempDir private Path folder;
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();

  private int run(Class<?> main, LogOptions logs, String... args) {
    return LocalLauncher.run(
        LaunchConfig.of(main.getName(), 2)
            .arguments(List.of(args))
            .jvmArguments(List.of("-Xmx64m", "-XX:TieredStopAtLevel=1"))
            .noticePeriod(Duration.ofSeconds(5))
            .environment(Map.of("PLAIN", "yes"))
            .logs(logs)
            .output(out, err)
            .build());
  }

  private Path log(int rank, String name) {
    return folder.resolve("attempt_0").resolve(Integer.toString(rank)).resolve(name);
  }

  /** P52: a file for each rank, without prefixes. */
  @Test
  void eachRankHasFilesOfItsOwn() {
    assertThat(run(Ranks.Chatter.class, LogOptions.SHOW_ALL.withFolder(folder, false))).isZero();

    assertThat(out.toString(UTF_8)).isEmpty();
    for (int rank = 0; rank < 2; rank++) {
      String text = " of rank " + rank + " ";
      assertThat(log(rank, "stdout.log"))
          .content()
          .startsWith("line 0" + text)
          .endsWith("no line end");
      assertThat(log(rank, "stderr.log")).isEmptyFile();
    }
  }

  /** P52: the filter chooses what is shown, not what is kept. */
  @Test
  void teeShowsTheOutputOfChosenRanks() throws Exception {
    var logs = LogOptions.SHOW_ALL.withFolder(folder, true).withLocalRanks(Set.of(1));
    assertThat(run(Ranks.Chatter.class, logs)).isZero();

    assertThat(out.toString(UTF_8).lines())
        .hasSize(1001)
        .allMatch(line -> line.startsWith("[1]| "));
    assertThat(Files.readAllLines(log(0, "stdout.log"))).hasSize(1001);
  }

  @Test
  void aRankThatThrowsSaysWhyInItsErrorFile() throws Exception {
    var logs = LogOptions.SHOW_ALL.withFolder(folder, true);
    assertThat(run(ElasticRanks.Breaking.class, logs, "throw", "9")).isEqualTo(1);

    var message = new ObjectMapper().readTree(log(1, "error.json").toFile()).path("message");
    assertThat(message.path("message").asText())
        .isEqualTo("java.lang.IllegalStateException: batch 17 is empty");
    assertThat(message.path("extraInfo").path("py_callstack").asText()).contains("Breaking.main");
    assertThat(message.path("extraInfo").path("timestamp").asText()).matches("\\d{10}");
    var read = ErrorFile.read(log(1, "error.json")).orElseThrow();
    assertThat(read.follows()).isFalse();
    assertThat(read.trace()).startsWith("at ").doesNotContain("reflect");
    assertThat(log(1, "stderr.log")).content().contains("about to fail\n");
  }

  @Test
  void ranksFindTheVariablesOfTorchrun() {
    assertThat(run(Variables.class, LogOptions.SHOW_ALL)).isZero();

    String async = System.getenv().getOrDefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
    assertThat(out.toString(UTF_8).lines())
        .containsExactlyInAnyOrder(
            "[0]| error file 0/error.json async " + async + " plain yes",
            "[1]| error file 1/error.json async " + async + " plain yes");
  }

  /** Prints variables. */
  static final class Variables {
    private Variables() {}

    public static void main(String[] args) {
      Path file = Path.of(System.getenv("TORCHELASTIC_ERROR_FILE"));
      System.out.printf(
          "error file %s async %s plain %s%n",
          file.subpath(file.getNameCount() - 2, file.getNameCount()),
          System.getenv("TORCH_NCCL_ASYNC_ERROR_HANDLING"),
          System.getenv("PLAIN"));
    }
  }
}
