package dev.weft.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.LocalWorld;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The recorded stores, groups, collectives and refusals of PyTorch (P28, P31, P32). */
@Timeout(300)
class C10dGoldenTest {
  private static final Path DATA = Path.of("src/test/resources/golden/c10d");

  @ParameterizedTest
  @CsvSource({"collectives,1000", "errors,100", "groups,120", "store-semantics,20", "fr-cases,30"})
  void aFilePasses(String name, int atLeast) throws IOException {
    ByteArrayOutputStream text = new ByteArrayOutputStream();
    PrintStream out = new PrintStream(text, true, StandardCharsets.UTF_8);
    int failed = new Conformance(out).run(DATA, Set.of(name), null);
    String report = text.toString(StandardCharsets.UTF_8);
    assertThat(failed).as(report).isZero();
    String total = report.substring(report.lastIndexOf("total: ") + 7);
    assertThat(Integer.parseInt(total.substring(0, total.indexOf(' ')))).isGreaterThan(atLeast);
  }

  /** Whichever way the data go, the results are those that were recorded. */
  @ParameterizedTest
  @CsvSource({
    "3, ''",
    "3, 'all_reduce=flat,broadcast=flat,reduce=flat'",
    "4, 'all_reduce=direct,broadcast=scatter,reduce=scatter'",
    "3, 'all_reduce=ring'"
  })
  void collectivesPassOverTcpToo(String size, String algorithms) throws IOException {
    CollectivesRunner runner =
        new CollectivesRunner(
            n -> LocalWorld.of(n).overTcp().variable("WEFT_HOST_ALGORITHM", algorithms));
    List<String> failed = new ArrayList<>();
    JsonNode worlds = Json.read(DATA.resolve("collectives.json.gz")).get("worlds");
    assertThat(worlds.get(size)).hasSizeGreaterThan(300);
    for (JsonNode c : worlds.get(size)) {
      Outcome outcome = runner.run(c);
      if (outcome.kind() == Outcome.Kind.FAILED) {
        failed.add(c.get("name").asText() + " of " + size + ": " + outcome.detail());
      }
    }
    assertThat(failed).isEmpty();
  }
}
