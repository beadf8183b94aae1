package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ObjectCollectives;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The recorded cases of object collectives. */
final class ObjectCalls {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Set<String> CALLS =
      Set.of("all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list");

  private ObjectCalls() {}

  static boolean knows(String call) {
    return CALLS.contains(call);
  }

  static Outcome run(JsonNode recorded, LocalWorld world) {
    List<JsonNode> got = world.call(rank -> JSON.valueToTree(perform(recorded, rank)));
    for (int r = 0; r < got.size(); r++) {
      JsonNode want = recorded.get("ranks").get(r).get("out").get(0).get("objects");
      // A rank that gets nothing has null in Python and an empty list here.
      JsonNode expected = want.isNull() ? JSON.createArrayNode() : want;
      Json.requireEqual("rank " + r, expected, got.get(r));
    }
    return Outcome.PASSED;
  }

  private static List<@Nullable Object> perform(JsonNode recorded, int rank) {
    JsonNode params = recorded.get("params");
    JsonNode in = recorded.get("ranks").get(rank).get("in").get(0);
    Object own = JSON.convertValue(in.get("object"), Object.class);
    JsonNode listed = in.path("objects");
    return switch (recorded.get("call").asText()) {
      case "all_gather_object" -> ObjectCollectives.allGatherObject(own, Object.class, null);
      case "gather_object" ->
          ObjectCollectives.gatherObject(own, Object.class, params.get("dst").asInt(), null);
      case "broadcast_object_list" ->
          ObjectCollectives.broadcastObjectList(
              list(listed), Object.class, params.get("src").asInt(), null);
      default ->
          Collections.singletonList(
              ObjectCollectives.scatterObject(
                  listed.isArray() ? list(listed) : null,
                  Object.class,
                  params.get("src").asInt(),
                  null));
    };
  }

  private static List<@Nullable Object> list(JsonNode array) {
    List<@Nullable Object> out = new ArrayList<>();
    array.forEach(n -> out.add(JSON.convertValue(n, Object.class)));
    return out;
  }
}
