package dev.weft.profiler;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Reads traces for tests. */
final class Traces {
  private Traces() {}

  static List<ObjectNode> events(Path file) {
    List<ObjectNode> out = new ArrayList<>();
    TraceFile.open(file).events(out::add);
    return out;
  }

  static List<ObjectNode> slices(List<ObjectNode> events, String category) {
    return events.stream()
        .filter(e -> e.get("ph").asText().equals("X") && e.get("cat").asText().equals(category))
        .toList();
  }

  static double start(JsonNode slice) {
    return slice.get("ts").asDouble();
  }

  static double end(JsonNode slice) {
    return start(slice) + slice.get("dur").asDouble();
  }
}
