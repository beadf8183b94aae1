package dev.weft.bench;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class OverheadBenchmarkTest {
  /** Rows are matched with a peer's by name and parameters, so these are fixed. */
  @Test
  void printsOneLineOfJsonForEachRow() throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    Rows rows = new Rows(new PrintStream(bytes, true, StandardCharsets.UTF_8));
    OverheadBenchmark benchmark = new OverheadBenchmark(rows, 8, 0);
    benchmark.plain();
    benchmark.distributed();
    benchmark.collectives();

    List<String> lines = bytes.toString(StandardCharsets.UTF_8).lines().toList();
    assertThat(lines).hasSameSizeAs(rows.all());
    ObjectMapper mapper = new ObjectMapper();
    TreeMap<String, Double> values = new TreeMap<>();
    for (String line : lines) {
      JsonNode row = mapper.readTree(line);
      assertThat(row.get("impl").asText()).isEqualTo("weft");
      assertThat(row.get("unit").asText()).isEqualTo("us");
      values.put(row.get("bench").asText() + " " + row.get("params"), row.get("value").asDouble());
    }
    assertThat(values).hasSize(lines.size());
    assertThat(values.values()).allMatch(v -> v >= 0);
    assertThat(values)
        .containsKeys(
            "plain_add {\"shape\":\"8x8\",\"stat\":\"best\"}",
            "dtensor_matmul {\"cache\":\"warm\",\"mesh\":\"2x1 fake\",\"placements\":\"S0,R\","
                + "\"shape\":\"8x8\",\"stat\":\"median\"}",
            "dtensor_redistribute {\"cache\":\"cold\",\"mesh\":\"1x1 gloo\",\"placements\":\"S0->R\","
                + "\"stat\":\"best\"}",
            "all_reduce_host {\"backend\":\"gloo\",\"mode\":\"async+wait\",\"stat\":\"best\",\"world\":1}");
  }

  @Test
  void theMedianOfAnEvenNumberOfRoundsIsBetweenTheMiddleTwo() {
    assertThat(Timing.Result.of(new double[] {4, 1, 3, 2})).isEqualTo(new Timing.Result(1, 2.5));
    assertThat(Timing.Result.of(new double[] {5, 1, 3})).isEqualTo(new Timing.Result(1, 3));
  }
}
