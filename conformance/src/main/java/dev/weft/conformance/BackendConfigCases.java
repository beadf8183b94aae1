package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.BackendConfig;
import java.util.LinkedHashMap;
import java.util.Map;

/** The recorded readings of backend strings. */
final class BackendConfigCases {
  private BackendConfigCases() {}

  static Outcome run(JsonNode recorded) {
    Map<String, String> got;
    try {
      got = BackendConfig.parse(recorded.get("name").asText()).byDeviceType();
    } catch (IllegalArgumentException e) {
      if (recorded.has("raises")) {
        return Outcome.PASSED;
      }
      String message = String.valueOf(e.getMessage());
      Json.require(
          message.contains("is unknown") || message.contains("does not serve"),
          "threw " + e + ", want " + recorded);
      return Outcome.deviation("a backend that is not there is refused when it is named");
    }
    Json.require(recorded.has("map"), "got " + got + ", want " + recorded);
    Map<String, String> want = new LinkedHashMap<>();
    recorded
        .get("map")
        .properties()
        .forEach(e -> want.put(e.getKey(), asHere(e.getValue().asText())));
    if (got.equals(want)) {
      return Outcome.PASSED;
    }
    boolean fewer = !got.isEmpty() && want.entrySet().containsAll(got.entrySet());
    Json.require(fewer, "got " + got + ", want " + want);
    return Outcome.deviation("a name stands for the device types that the backend serves here");
  }

  private static String asHere(String backend) {
    return backend.equals("gloo") ? "host" : backend;
  }
}
