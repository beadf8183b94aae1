package dev.weft.profiler;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.weft.c10d.LocalWorld;
import dev.weft.funcol.FunctionalCollectives;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Traces keep to the Trace Event Format ("Trace Event Format", Google, the JSON object form), which
 * Perfetto and chrome://tracing read: the fields that each phase needs, their types, flows that
 * begin and end once and are bound to slices, and names for every lane.
 */
class TraceFormatTest {
  private static final ObjectMapper STRICT =
      new ObjectMapper().enable(JsonParser.Feature.STRICT_DUPLICATE_DETECTION);
  private static final Set<String> METADATA =
      Set.of("process_name", "process_sort_index", "thread_name", "thread_sort_index");

  @TempDir private Path folder;

  /** Four ranks on a mesh; each reduces along both dimensions in each of two steps. */
  private TraceSummary record(Path merged) {
    LocalWorld.run(
        4,
        rank -> {
          var mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 2));
          try (Profiler profiler = Profiler.start(folder, Schedule.once(1, 0, 2))) {
            for (int step = 0; step < 3; step++) {
              try (TensorScope scope = TensorScope.open()) {
                Tensor x = Tensor.of(new float[64], 64);
                Tensor along = FunctionalCollectives.allReduce(x, "sum", mesh.getGroup("tp"));
                Tensor both =
                    FunctionalCollectives.allReduce(along.mul(2), "sum", mesh.getGroup("dp"));
                assertThat(both.sum().item()).isZero();
              }
              profiler.step();
            }
          }
        });
    return TraceMerge.merge(List.of(folder), merged);
  }

  @Test
  void ranksAndTheJoinedTraceKeepToTheFormat() throws IOException {
    Path merged = folder.resolve("all.json.gz");
    record(merged);
    check(folder.resolve("rank3.trace.json.gz"), Set.of(3));
    check(merged, Set.of(0, 1, 2, 3));
  }

  /** A mesh's groups carry the names of its dimensions, and those of one name are one row. */
  @Test
  void groupsOfAMeshAreNamedByItsDimensions() throws IOException {
    TraceSummary summary = record(folder.resolve("all.json.gz"));
    assertThat(summary.traffic())
        .extracting(TraceSummary.GroupTraffic::group)
        .containsExactlyInAnyOrder("dp", "tp");
    assertThat(events(read(folder.resolve("rank1.trace.json.gz"))))
        .filteredOn(e -> e.get("name").asText().equals("thread_name"))
        .extracting(e -> e.get("args").get("name").asText())
        .contains("collectives of tp [0, 1]", "collectives of dp [1, 3]");
  }

  private static JsonNode read(Path file) throws IOException {
    try (InputStream in = new GZIPInputStream(Files.newInputStream(file))) {
      return STRICT.readTree(in);
    }
  }

  private static List<JsonNode> events(JsonNode trace) {
    assertThat(trace.isObject()).isTrue();
    assertThat(trace.get("traceEvents").isArray()).isTrue();
    List<JsonNode> events = new ArrayList<>();
    trace.get("traceEvents").forEach(events::add);
    return events;
  }

  private static void check(Path file, Set<Integer> processes) throws IOException {
    List<JsonNode> events = events(read(file));
    Set<Integer> seen = new TreeSet<>();
    Set<String> named = new HashSet<>();
    Set<String> used = new HashSet<>();
    Map<Long, List<JsonNode>> flows = new HashMap<>();
    for (JsonNode e : events) {
      assertThat(e.get("ph").isTextual() && e.get("name").isTextual()).as("%s", e).isTrue();
      assertThat(e.get("pid").isInt() && e.get("tid").isInt()).as("%s", e).isTrue();
      seen.add(e.get("pid").asInt());
      String lane = e.get("pid") + "/" + e.get("tid");
      switch (e.get("ph").asText()) {
        case "M" -> {
          assertThat(METADATA).contains(e.get("name").asText());
          boolean name = e.get("name").asText().endsWith("_name");
          assertThat(name ? e.at("/args/name").isTextual() : e.at("/args/sort_index").isInt())
              .as("%s", e)
              .isTrue();
          if (e.get("name").asText().equals("thread_name")) {
            assertThat(named.add(lane)).as("one name for lane %s", lane).isTrue();
          }
        }
        case "X" -> {
          time(e, "ts");
          time(e, "dur");
          used.add(lane);
        }
        case "C" -> {
          time(e, "ts");
          assertThat(e.get("args")).as("%s", e).isNotEmpty().allMatch(JsonNode::isNumber);
        }
        case "s", "t", "f" -> {
          time(e, "ts");
          flows.computeIfAbsent(e.get("id").asLong(), id -> new ArrayList<>()).add(e);
        }
        default -> throw new AssertionError("a phase that is not written: " + e);
      }
    }
    assertThat(seen).isEqualTo(processes);
    assertThat(named).containsAll(used);
    assertThat(flows).isNotEmpty();
    flows.values().forEach(flow -> checkFlow(flow, events));
  }

  private static void time(JsonNode e, String field) {
    assertThat(e.get(field).isNumber() && e.get(field).asDouble() >= 0)
        .as("%s of %s", field, e)
        .isTrue();
  }

  /** One start, steps, one end, in the order of time; each inside a slice of its lane. */
  private static void checkFlow(List<JsonNode> flow, List<JsonNode> events) {
    for (int i = 0; i < flow.size(); i++) {
      JsonNode point = flow.get(i);
      String phase = i == 0 ? "s" : i == flow.size() - 1 ? "f" : "t";
      assertThat(point.get("ph").asText()).as("%s", flow).isEqualTo(phase);
      assertThat(point.get("name")).isEqualTo(flow.get(0).get("name"));
      assertThat(point.get("cat")).isEqualTo(flow.get(0).get("cat"));
      double time = Traces.start(point);
      assertThat(i == 0 || Traces.start(flow.get(i - 1)) <= time).as("%s", flow).isTrue();
      assertThat(events)
          .as("a slice under %s", point)
          .anyMatch(
              e ->
                  e.get("ph").asText().equals("X")
                      && e.get("pid").equals(point.get("pid"))
                      && e.get("tid").equals(point.get("tid"))
                      && Traces.start(e) <= time
                      && time <= Traces.end(e));
    }
  }
}
