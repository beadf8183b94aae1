package dev.weft.examples.trainer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunReportTest {
  @TempDir private Path run;

  private void train(String more) {
    String arguments =
        "--steps 6 --eval-batches 0 --mesh dp=2,tp=2 --out "
            + run
            + (more.isEmpty() ? "" : " ")
            + more;
    List<LossRow> rows =
        Train.inProcess(
            TrainOptions.parse(arguments.split(" ")),
            new PrintStream(OutputStream.nullOutputStream()));
    assertThat(rows).hasSize(6);
  }

  @Test
  void aProfiledRunIsDrawnWithAllItsRanks() throws IOException {
    Path traces = run.resolve("traces");
    train("--profile " + traces + " --profile-steps 2,1,3");
    Path page = run.resolve("run.html");
    List<String> warnings = RunReport.write(run, traces, page);
    String html = Files.readString(page);
    assertThat(html.replace("http://www.w3.org/2000/svg", ""))
        .doesNotContainPattern("https?:|<link|<img|@import|url\\(|src=")
        .doesNotContain("{{");
    assertThat(html)
        .containsPattern("Timeline of step [345]: ")
        .contains("dp 1, tp 1")
        .contains("tok_emb.weight")
        .contains("<td>all_reduce</td>")
        .contains("Memory in the recorded steps");
    for (int rank = 0; rank < 4; rank++) {
      assertThat(html).contains(">rank " + rank + "<").contains("rank " + rank + ", cpu");
    }
    warnings.forEach(w -> assertThat(html).contains(Report.escape(w)));
  }

  @Test
  void withoutTracesTheRestIsThere() throws IOException {
    train("");
    Path page = run.resolve("run.html");
    RunReport.write(run, null, page);
    assertThat(Files.readString(page)).contains("Mesh").doesNotContain("Timeline of");
  }

  @Test
  void aRecordIsReadAsItWasWritten() {
    RunRecord record =
        new RunRecord(
            "t",
            "s",
            java.util.Map.of("--mesh", "dp=2"),
            1.5,
            7,
            java.util.Map.of("dp", 2),
            List.of(new RunRecord.Placed(List.of("a", "b"), "[2]", "[R]", "<svg/>")),
            List.of("frobnicate"));
    record.write(run);
    assertThat(RunRecord.read(run)).isEqualTo(record);
  }

  @Test
  void aFolderWithoutARunIsRefused() {
    assertThatThrownBy(() -> RunReport.write(run, null, run.resolve("x.html")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("holds no run: run.json cannot be read");
  }
}
