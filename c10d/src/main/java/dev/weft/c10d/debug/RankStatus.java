package dev.weft.c10d.debug;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.weft.c10d.store.Store;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Where a rank is: the call it is in or has given up, or the last one it has ended, in each group.
 * Ranks tell it through the store; when an operation times out, the ranks' words make a desync
 * report. Stateless.
 */
public final class RankStatus {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String KEY = "weft/status/";

  private RankStatus() {}

  /** Tells the others where this rank is. */
  public static void publish(Store store, int rank, FlightRecorder recorder) {
    store.set(KEY + rank, describe(recorder).toString());
  }

  /** Takes back what this rank has told. */
  public static void remove(Store store, int rank) {
    boolean unused = store.deleteKey(KEY + rank);
  }

  private static ObjectNode describe(FlightRecorder recorder) {
    ObjectNode out = JsonNodeFactory.instance.objectNode();
    out.put("time_ms", System.currentTimeMillis());
    ObjectNode groups = out.putObject("groups");
    for (RecordedCall call : recorder.calls()) {
      ObjectNode last = groups.putObject(call.group().name());
      last.put("call", call.name() + (call.isP2p() ? " (message " : " (collective "));
      last.put("seq", call.sequenceNumber());
      last.put("active", call.isActive());
      last.put("failed", call.failure() != null);
      if (call.isActive() && !out.has("stuck")) {
        out.put("stuck", place(call));
        out.put("stuck_group", call.group().name());
      }
      out.remove(List.of("gave_up", "gave_up_group"));
      String failure = call.failure();
      if (failure != null) {
        out.put("gave_up", place(call) + " (" + kind(failure) + ")");
        out.put("gave_up_group", call.group().name());
      }
    }
    return out;
  }

  private static String place(RecordedCall call) {
    String group = call.group().name();
    return call.name() + " (seq " + call.sequenceNumber() + ") of group '" + group + "'";
  }

  /** An exception's class, without its package. */
  private static String kind(String failure) {
    String type = failure.substring(0, failure.concat(":").indexOf(':'));
    return type.substring(type.lastIndexOf('.') + 1);
  }

  /**
   * Which rank of a group is where, and who keeps the others waiting: those that are in no call. A
   * rank that is itself stuck in another group is named, not blamed.
   *
   * @param group the group's name
   * @param ranks its global ranks
   */
  public static String report(Store store, String group, List<Integer> ranks) {
    List<String> lines = new ArrayList<>();
    List<Integer> behind = new ArrayList<>();
    long now = System.currentTimeMillis();
    long furthest = 0;
    List<@Nullable JsonNode> all = new ArrayList<>();
    for (int rank : ranks) {
      JsonNode status = read(store, rank);
      all.add(status);
      if (status != null) {
        furthest = Math.max(furthest, status.at("/groups").path(group).path("seq").asLong());
      }
    }
    for (int i = 0; i < ranks.size(); i++) {
      int rank = ranks.get(i);
      JsonNode status = all.get(i);
      if (status == null) {
        lines.add("rank " + rank + " has told nothing");
        behind.add(rank);
        continue;
      }
      JsonNode last = status.path("groups").path(group);
      boolean stuck = status.has("stuck");
      StringBuilder line = new StringBuilder("rank " + rank);
      String where = status.path("gave_up_group").asText();
      if (stuck) {
        line.append(" is in ").append(status.get("stuck").asText());
        where = status.path("stuck_group").asText();
      } else if (status.has("gave_up")) {
        line.append(" has given up ").append(status.get("gave_up").asText());
      } else {
        line.append(" is in no call");
      }
      if (!where.equals(group)) {
        line.append(last.isMissingNode() ? ", and made none here" : ended(last));
      }
      line.append(" (told ")
          .append(Math.max(0, now - status.path("time_ms").asLong()))
          .append(" ms ago)");
      lines.add(line.toString());
      if (!stuck && last.path("seq").asLong() < furthest) {
        behind.add(rank);
      }
    }
    return "desync report of group '"
        + group
        + "': "
        + String.join("; ", lines)
        + (behind.isEmpty()
            ? ""
            : "; the others wait for "
                + (behind.size() == 1 ? "rank " + behind.get(0) : "ranks " + behind));
  }

  private static String ended(JsonNode last) {
    String verb = last.path("failed").asBoolean() ? ", and gave up " : ", and ended ";
    return verb + last.path("call").asText() + last.path("seq").asLong() + ") here";
  }

  private static @Nullable JsonNode read(Store store, int rank) {
    if (!store.check(List.of(KEY + rank))) {
      return null;
    }
    String text = new String(store.get(KEY + rank), UTF_8);
    try {
      return JSON.readTree(text);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("key '" + KEY + rank + "' holds no status: " + text, e);
    }
  }
}
