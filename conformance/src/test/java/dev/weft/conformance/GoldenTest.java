package dev.weft.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The golden files that must be green. */
class GoldenTest {
  @ParameterizedTest
  @ValueSource(
      strings = {
        "dtensor/mesh",
        "dtensor/sharding",
        "dtensor/redistribute",
        "dtensor/funcol",
        "dtensor/ops",
        "dtensor/autograd",
        "dtensor/tp"
      })
  void aFilePasses(String name) throws Exception {
    Path file = Path.of("src/test/resources/golden").resolve(name);
    ByteArrayOutputStream text = new ByteArrayOutputStream();
    int failed =
        new Conformance(new PrintStream(text, true, StandardCharsets.UTF_8))
            .run(file.getParent(), Set.of(file.getFileName().toString()), null);
    assertThat(failed).as(text.toString(StandardCharsets.UTF_8)).isZero();
    assertThat(text.toString(StandardCharsets.UTF_8)).containsPattern("total: [1-9]\\d* passed");
  }
}
