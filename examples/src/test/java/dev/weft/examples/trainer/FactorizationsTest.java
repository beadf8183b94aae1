package dev.weft.examples.trainer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.examples.reference.GoldenRun;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Losses and gradient norms do not depend on the mesh. The table of all meshes of eight ranks is
 * what {@code weft run dev.weft.examples.trainer.Factorizations 8} prints.
 */
class FactorizationsTest {
  private static final GoldenRun GOLDEN = GoldenRun.named("gpt", "single");

  // The steps of the recorded run's schedule are kept, and only the first ones are run.
  private static List<LossRow> train(List<String> model, String mesh) {
    List<String> all = new ArrayList<>(model);
    all.addAll(List.of(mesh.split(" ")));
    return Factorizations.train(all, List.of());
  }

  /** All of the recorded steps, on three and four dimensions. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "--mesh dp=1",
        "--mesh dp=2,pp=2,tp=2 --sequence-parallel --microbatches 2",
        "--mesh dp=2,fsdp=2,pp=2 --schedule gpipe"
      })
  void theReferenceLosesAsRecorded(String mesh) {
    List<LossRow> rows = train(Factorizations.REFERENCE, mesh);
    assertThat(rows).hasSize(40);
    assertThat(Factorizations.toRecorded(rows, GOLDEN)).isLessThan(GoldenRun.TOLERANCE);
  }

  private static final List<LossRow> ALONE = train(deep(), "--mesh dp=1");

  private static List<String> deep() {
    List<String> model = new ArrayList<>(Factorizations.DEEP);
    model.addAll(List.of("--steps", "8", "--kv-heads", "8", "--seq", "16", "--width", "32"));
    return model;
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "--mesh dp=8",
        "--mesh fsdp=8",
        "--mesh pp=8 --microbatches 4",
        "--mesh tp=8 --sequence-parallel",
        "--mesh fsdp=2,pp=2,tp=2 --microbatches 2 --schedule interleaved --stages-per-rank 2",
        "--mesh dp=2,fsdp=2,tp=2",
        "--mesh pp=4,tp=2 --sequence-parallel",
        "--mesh dp=1 --microbatches 4"
      })
  void eightRanksLoseAsOne(String mesh) {
    Factorizations.Difference to = Factorizations.Difference.of(train(deep(), mesh), ALONE);
    assertThat(to.loss()).isLessThan(GoldenRun.TOLERANCE);
    assertThat(to.gradNorm()).isLessThan(GoldenRun.TOLERANCE);
  }

  /** Query heads that share keys and values, and an embedding that is the output layer, too. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "--mesh fsdp=2,tp=2 --sequence-parallel",
        "--mesh dp=2,tp=2 --microbatches 2",
        "--mesh fsdp=4"
      })
  void groupedAndTiedModelsLoseAsOnOneRank(String mesh) {
    List<String> model =
        List.of("--heads", "8", "--kv-heads", "2", "--tied", "--steps", "8", "--lr", "1e-3");
    Factorizations.Difference to =
        Factorizations.Difference.of(train(model, mesh), train(model, "--mesh dp=1"));
    assertThat(to.loss()).isLessThan(GoldenRun.TOLERANCE);
    assertThat(to.gradNorm()).isLessThan(GoldenRun.TOLERANCE);
  }

  /** The comparison sees what it is there for: a microbatch less is another loss. */
  @Test
  void otherDataIsADifference() {
    List<LossRow> other = train(deep(), "--seed 1");
    Factorizations.Difference to = Factorizations.Difference.of(other, ALONE);
    assertThat(to.loss()).isGreaterThan(1e-3);
    assertThat(to.gradNorm()).isGreaterThan(1e-3);
  }

  /** 20 ways to write 8 as a product of four sizes; all are there. */
  @Test
  void theTableHasAllProducts() {
    assertThat(
            Factorizations.meshes(8).stream()
                .filter(m -> m.size() == 2)
                .map(m -> ParallelDims.parse(m.get(1), 8))
                .distinct())
        .hasSize(20)
        .allMatch(d -> d.ranks() == 8);
  }
}
