package dev.weft.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The golden files that must be green. */
class GoldenTest {
  @ParameterizedTest
  @CsvSource({"mesh,0", "funcol,0", "sharding,0", "redistribute,0", "ops,0", "autograd,0", "tp,0"})
  void aFilePasses(String name, int missing) throws Exception {
    ByteArrayOutputStream text = new ByteArrayOutputStream();
    int failed =
        new Conformance(new PrintStream(text, true, StandardCharsets.UTF_8))
            .run(Path.of("src/test/resources/golden/dtensor"), Set.of(name), null);
    assertThat(failed).as(text.toString(StandardCharsets.UTF_8)).isEqualTo(missing);
    assertThat(text.toString(StandardCharsets.UTF_8)).contains("total: ");
  }
}
