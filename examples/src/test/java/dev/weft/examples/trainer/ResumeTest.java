package dev.weft.examples.trainer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.examples.reference.GoldenRun;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A run that is stopped and taken up again, on the same mesh and on others. */
class ResumeTest {
  private static final int STEPS = 8;

  @TempDir private Path folder;
  private final ByteArrayOutputStream said = new ByteArrayOutputStream();

  private List<LossRow> train(Path out, String mesh, String... more) {
    List<String> all = new ArrayList<>(List.of("--mesh", mesh, "--out", out.toString()));
    all.addAll(List.of("--steps", "" + STEPS, "--seq", "16", "--heads", "8", "--layers", "4"));
    all.addAll(List.of("--eval-batches", "1", "--eval-every", "2", "--lr", "1e-3"));
    all.addAll(List.of(more));
    return Train.inProcess(
        TrainOptions.parse(all.toArray(String[]::new)),
        new PrintStream(said, true, StandardCharsets.UTF_8));
  }

  private static List<LossRow> untimed(List<LossRow> rows) {
    return rows.stream()
        .map(
            r ->
                new LossRow(
                    r.step(),
                    r.tokens(),
                    r.loss(),
                    r.gradNorm(),
                    r.learningRate(),
                    0,
                    r.evalLoss()))
        .toList();
  }

  private static List<LossRow> csv(Path out) throws IOException {
    return Files.readAllLines(out.resolve("losses.csv")).stream()
        .skip(1)
        .map(LossRow::parse)
        .toList();
  }

  /** On the same mesh every bit is that of the run that did not stop. */
  @ParameterizedTest
  @ValueSource(strings = {"dp=2,pp=2,tp=2", "dp=2,fsdp=2,tp=2"})
  void theSameMeshGoesOnWithTheSameBits(String mesh) throws IOException {
    List<LossRow> straight = train(folder.resolve("straight"), mesh);
    Path stopped = folder.resolve("stopped");
    assertThat(train(stopped, mesh, "--stop-after", "3")).hasSize(3);
    assertThat(train(stopped, mesh)).hasSize(STEPS - 3);
    assertThat(said.toString(StandardCharsets.UTF_8)).contains("resumed after step 3, sample 24");
    assertThat(untimed(csv(stopped))).isEqualTo(untimed(straight));
    for (int rank = 0; rank < 8; rank++) {
      String file = "checkpoints/step-00000008/rank-" + rank + ".safetensors";
      Path one = folder.resolve("straight").resolve(file);
      if (Files.exists(one)) {
        assertThat(stopped.resolve(file)).hasSameBinaryContentAs(one);
      }
    }
    assertThat(stopped.resolve("report.html")).exists();
  }

  /** From mesh to mesh; tolerances are the recorded runs'. */
  @Test
  void otherMeshesGoOnWithTheSameLosses() throws IOException {
    List<LossRow> straight = train(folder.resolve("straight"), "dp=1");
    Path moving = folder.resolve("moving");
    List<LossRow> unused = train(moving, "dp=8", "--stop-after", "2");
    unused = train(moving, "dp=2,pp=2,tp=2", "--stop-after", "4");
    unused = train(moving, "fsdp=2,tp=4", "--stop-after", "6", "--sequence-parallel");
    unused = train(moving, "pp=2,fsdp=2", "--schedule", "gpipe");
    List<LossRow> rows = csv(moving);
    Factorizations.Difference to = Factorizations.Difference.of(rows, straight);
    assertThat(to.loss()).isLessThan(GoldenRun.TOLERANCE);
    assertThat(to.gradNorm()).isLessThan(GoldenRun.TOLERANCE);
    for (int i = 0; i < rows.size(); i++) {
      assertThat(rows.get(i).tokens()).isEqualTo(straight.get(i).tokens());
      assertThat(rows.get(i).evalLoss() == null).isEqualTo(straight.get(i).evalLoss() == null);
    }
  }

  /** Lines of steps that a killed run did after its last checkpoint are written anew, once. */
  @Test
  void linesAfterTheCheckpointAreDropped() throws IOException {
    List<LossRow> unused = train(folder, "dp=2", "--stop-after", "4");
    Path losses = folder.resolve("losses.csv");
    List<LossRow> before = csv(folder);
    Files.writeString(
        losses, Files.readString(losses) + "5,640,9.0,9.0,0.1,1.0,\n6,768,9.0"); // half a line
    unused = train(folder, "dp=2");
    assertThat(csv(folder)).hasSize(STEPS);
    assertThat(csv(folder).subList(0, 4)).isEqualTo(before);
    assertThat(csv(folder).get(4).loss()).isLessThan(9);
  }

  /** P55: a checkpoint that was damaged is passed over for the one before. */
  @Test
  void aDamagedCheckpointIsPassedOver() throws IOException {
    List<LossRow> unused = train(folder, "dp=2", "--stop-after", "4", "--checkpoint-every", "2");
    Path newest = folder.resolve("checkpoints/step-00000004/rank-0.safetensors");
    byte[] bytes = Files.readAllBytes(newest);
    bytes[bytes.length - 1] ^= 1;
    Files.write(newest, bytes);
    assertThat(train(folder, "dp=2")).hasSize(STEPS - 2);
    assertThat(said.toString(StandardCharsets.UTF_8))
        .contains("passed over: ")
        .contains("resumed after step 2, sample 16");
  }

  @Test
  void anotherModelOrOtherDataIsRefused() {
    List<LossRow> unused = train(folder, "dp=1", "--stop-after", "1");
    String made =
        "the checkpoint " + folder.resolve("checkpoints/step-00000001") + " was made with";
    assertThatThrownBy(() -> train(folder, "dp=1", "--kv-heads", "4"))
        .hasMessageContaining("--kv-heads is 4, and " + made + " 8; expected the same");
    assertThatThrownBy(() -> train(folder, "dp=1", "--tokenizer", "char"))
        .hasMessageContaining("--data (checksum) is");
    assertThatThrownBy(() -> train(folder, "dp=1", "--order", "random"))
        .hasMessageContaining("--order=random is 1, and " + made + " 0");
  }
}
