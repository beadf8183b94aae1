package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The cases of a golden file. Most files are a list of them; those of c10d may have a list, or a
 * map by name, for each world size, and maps of other sections beside them.
 */
final class GoldenCases {
  private static final List<String> SECTIONS = List.of("init_methods", "backend_config");

  private GoldenCases() {}

  /**
   * A case under the name it is reported by.
   *
   * @param id its id, or its name, after its world size where there are several
   * @param node what is recorded; from a map it has also its name, and its world or section
   */
  record Case(String id, JsonNode node) {}

  static List<Case> of(JsonNode root) {
    List<Case> out = new ArrayList<>();
    for (JsonNode c : root.path("cases")) {
      out.add(new Case(c.has("id") ? c.get("id").asText() : c.get("name").asText(), c));
    }
    for (Map.Entry<String, JsonNode> world : root.path("worlds").properties()) {
      if (world.getValue().isArray()) {
        for (JsonNode c : world.getValue()) {
          out.add(new Case(world.getKey() + "/" + c.get("name").asText(), c));
        }
      } else {
        addNamed(out, world.getKey(), "world", world.getValue());
      }
    }
    for (String section : SECTIONS) {
      addNamed(out, section, "section", root.path(section));
    }
    return out;
  }

  private static void addNamed(List<Case> out, String prefix, String field, JsonNode byName) {
    for (Map.Entry<String, JsonNode> c : byName.properties()) {
      ObjectNode node = JsonNodeFactory.instance.objectNode();
      node.put("name", c.getKey()).put(field, prefix);
      node.setAll((ObjectNode) c.getValue());
      out.add(new Case(prefix + "/" + c.getKey(), node));
    }
  }
}
