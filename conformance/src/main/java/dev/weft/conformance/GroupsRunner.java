package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.weft.c10d.LocalWorld;
import dev.weft.tensor.TensorScope;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Runs the cases of {@code groups.json}: sub-groups, rank mapping, ways to join, backend strings.
 */
final class GroupsRunner implements CaseRunner {
  private static final Duration TIMEOUT = Duration.ofSeconds(10);
  private static final ObjectMapper JSON = new ObjectMapper();

  private static final Map<String, String> NOT_APPLICABLE =
      Map.of(
          "new_subgroups_by_enumeration(None)", "the argument is a List and not null",
          "src and group_src both", "global ranks are Distributed's, group ranks ProcessGroup's");

  @Override
  public Outcome run(JsonNode recorded) throws Exception {
    if (recorded.has("section")) {
      return recorded.get("section").asText().equals("backend_config")
          ? BackendConfigCases.run(recorded)
          : InitMethodCases.run(recorded);
    }
    String name = recorded.get("name").asText();
    String reason = NOT_APPLICABLE.get(name);
    if (reason != null) {
      return Outcome.notApplicable(reason);
    }
    if (recorded.path("every_rank").path("raises").asText("").equals("IndexError")) {
      return Outcome.notApplicable("the script found no rank outside the group");
    }
    int world = recorded.get("world").asInt();
    GroupCalls calls = new GroupCalls(recorded);
    List<Ranks.Result<JsonNode>> results;
    try (TensorScope scope = TensorScope.open()) {
      results =
          Ranks.run(
              LocalWorld.of(world).timeout(TIMEOUT),
              world,
              rank -> JSON.valueToTree(calls.perform(rank)));
    }
    return grade(name, world, recorded, results);
  }

  private static Outcome grade(
      String name, int world, JsonNode recorded, List<Ranks.Result<JsonNode>> results) {
    if (name.equals("new_group twice, names")) {
      return gradeNames(results);
    }
    if (name.equals("group_desc")) {
      results.forEach(r -> Json.requireEqual("description", "mine", r.get().get(2).asText()));
      return Outcome.deviation("a group without a description has an empty one");
    }
    if (name.startsWith("split_group") && !name.contains("overlap")) {
      return gradeSplit(world, results);
    }
    boolean everywhere =
        results.stream().allMatch(r -> r.error() instanceof IllegalArgumentException);
    if (everywhere && recorded.has("by_rank") && raisesSomewhere(recorded)) {
      return Outcome.deviation("refused on every rank, not on members alone");
    }
    for (int r = 0; r < world; r++) {
      JsonNode want =
          recorded.has("every_rank") ? recorded.get("every_rank") : recorded.get("by_rank").get(r);
      Ranks.Result<JsonNode> got = results.get(r);
      Throwable error = got.error();
      if (want.has("raises")) {
        Json.require(
            error != null && Errors.fits(want.get("raises").asText(), error),
            "rank " + r + ": got " + got + ", want " + want);
      } else {
        Json.requireEqual("rank " + r, want.get("returns"), got.get());
      }
    }
    return Outcome.PASSED;
  }

  private static boolean raisesSomewhere(JsonNode recorded) {
    for (JsonNode rank : recorded.get("by_rank")) {
      if (rank.has("raises")) {
        return true;
      }
    }
    return false;
  }

  /** Names come from the members: the same on all ranks, different between groups. */
  private static Outcome gradeNames(List<Ranks.Result<JsonNode>> results) {
    List<String> first = Json.strings(results.get(0).get());
    Set<String> different = new HashSet<>(first);
    Json.require(different.size() == 3, "names: got " + first + ", want three different ones");
    results.forEach(r -> Json.requireEqual("names", first, Json.strings(r.get())));
    return Outcome.deviation("names derive from the members");
  }

  private static Outcome gradeSplit(int world, List<Ranks.Result<JsonNode>> results) {
    for (int r = 0; r < world; r++) {
      int low = r / 2 * 2;
      JsonNode group = results.get(r).get().get("group");
      Json.requireEqual(
          "rank " + r + " ranks", "[" + low + "," + (low + 1) + "]", group.get("ranks"));
      double sum = (1 << low) + (1 << (low + 1));
      Json.requireEqual("rank " + r + " sum", sum, results.get(r).get().get("sum_of_2_pow_rank"));
    }
    return Outcome.deviation("a group can be split on CPU");
  }
}
