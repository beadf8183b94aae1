package dev.weft.c10d.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.weft.c10d.LocalWorld;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The recorded collectives of PyTorch, on threads (P28, P31, P32). */
@Timeout(300)
class CollectivesConformanceTest {
  @ParameterizedTest(name = "{0} ranks")
  @ValueSource(ints = {2, 3, 4})
  void inOneMemory(int worldSize) throws IOException {
    run(worldSize, () -> LocalWorld.of(worldSize));
  }

  @ParameterizedTest(name = "{0} ranks")
  @ValueSource(ints = {2, 4})
  void overTcp(int worldSize) throws IOException {
    run(worldSize, () -> LocalWorld.of(worldSize).overTcp());
  }

  private static void run(int worldSize, Supplier<LocalWorld> world) throws IOException {
    JsonNode cases = load().get("worlds").get(String.valueOf(worldSize));
    assertThat(cases.size()).isGreaterThan(300);
    Map<Outcome.Verdict, Integer> counts = new EnumMap<>(Outcome.Verdict.class);
    List<String> failed = new ArrayList<>();
    for (JsonNode c : cases) {
      Outcome outcome = CollectiveCases.run(c, world.get());
      counts.merge(outcome.verdict(), 1, Integer::sum);
      if (outcome.verdict() == Outcome.Verdict.FAILED) {
        failed.add(c.get("name").asText() + ": " + outcome.detail());
      }
    }
    System.out.println("collectives of " + worldSize + " ranks: " + counts);
    assertThat(failed).isEmpty();
  }

  private static JsonNode load() throws IOException {
    String name = "/golden/c10d/collectives.json.gz";
    try (InputStream in =
        new GZIPInputStream(
            Objects.requireNonNull(
                CollectivesConformanceTest.class.getResourceAsStream(name), name))) {
      return new ObjectMapper().readTree(in);
    }
  }
}
