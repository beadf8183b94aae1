package dev.weft.conformance;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.GroupOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Subgroups;
import dev.weft.c10d.Work;
import dev.weft.tensor.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** The calls of {@code groups.json} on one rank; results look as the data has them. */
final class GroupCalls {
  private static final String OUTSIDE = "not a member";
  private static final Pattern LISTS = Pattern.compile("\\[\\[.*]]");
  private static final Pattern LIST = Pattern.compile("\\[[-0-9, ]*]");
  private static final ObjectMapper JSON = new ObjectMapper();

  private final String name;
  private final int world;
  private final List<Integer> subset;

  GroupCalls(JsonNode recorded) {
    this.name = recorded.get("name").asText();
    this.world = recorded.get("world").asInt();
    this.subset = members(recorded);
  }

  /** The ranks that took part, where the name does not say it. */
  private static List<Integer> members(JsonNode recorded) {
    List<Integer> out = new ArrayList<>();
    for (int r = 0; r < recorded.get("world").asInt(); r++) {
      JsonNode rank = recorded.path("by_rank").path(r);
      if (!rank.path("returns").asText("").equals(OUTSIDE)) {
        out.add(r);
      }
    }
    return out;
  }

  @Nullable Object perform(int rank) throws JsonProcessingException {
    if (name.startsWith("new_subgroups_by_enumeration")) {
      Subgroups groups = Distributed.newSubgroupsByEnumeration(lists(name));
      // The second of these cases shows the group alone.
      boolean sums = lists(name).stream().mapToInt(l -> l.length).sum() == world;
      return subgroups(groups, sums, false);
    }
    if (name.startsWith("new_subgroups(")) {
      return subgroups(Distributed.newSubgroups(groupSize()), true, true);
    }
    if (name.startsWith("split_group")) {
      String parts = name.contains("overlap") ? "[[0, 1], [1, 2]]" : "[[0, 1], [2, 3]]";
      return two(Distributed.splitGroup(null, lists(parts)));
    }
    if (name.startsWith("new_group(")) {
      return newGroup(rank);
    }
    return other(rank);
  }

  private @Nullable Object newGroup(int rank) {
    if (name.contains("'nope'")) {
      return shown(Distributed.newGroup(List.of(0, 1), GroupOptions.DEFAULT.withBackend("nope")));
    }
    if (name.contains("use_local_synchronization")) {
      boolean all = name.contains("called by a non-member too");
      if (!all && !ranks().contains(rank)) {
        return "not called";
      }
      ProcessGroup group = Distributed.newGroup(ranks(), GroupOptions.DEFAULT);
      return !all ? two(group) : group.isMember() ? shown(group) : null;
    }
    if (name.contains("sort_ranks=False")) {
      return two(Distributed.newGroup(ranks(), GroupOptions.DEFAULT.keepOrder()));
    }
    List<Integer> ranks =
        switch (name.substring("new_group(".length(), name.length() - 1)) {
          case "" -> all();
          case "rank too large" -> List.of(0, world);
          case "negative" -> List.of(0, -1);
          case "more than world" -> IntStream.rangeClosed(0, world).boxed().toList();
          default -> ranks();
        };
    return two(Distributed.newGroup(ranks, GroupOptions.DEFAULT));
  }

  private @Nullable Object other(int rank) {
    if (name.startsWith("rank translation")) {
      ProcessGroup g = Distributed.newGroup(ranks(), GroupOptions.DEFAULT);
      return !g.isMember()
          ? null
          : ordered(
              "to_group",
              ranks().stream().map(g::groupRank).toList(),
              "to_global",
              IntStream.range(0, 2).mapToObj(g::globalRank).toList());
    }
    return switch (name) {
      case "world" -> two(Distributed.world());
      case "new_group twice, names" ->
          Arrays.stream(threeGroups()).map(ProcessGroup::name).toList();
      case "group_desc" -> Arrays.stream(threeGroups()).map(ProcessGroup::description).toList();
      case "get_group_rank of a non-member" ->
          inSubset(
              g ->
                  g.groupRank(
                      all().stream()
                          .filter(r -> !g.ranks().contains(r))
                          .findFirst()
                          .orElseThrow()));
      case "get_global_rank out of range" -> inSubset(g -> g.globalRank(7));
      case "get_rank/get_world_size of a group one is not in" -> {
        ProcessGroup g = Distributed.newGroup(0);
        yield List.of(g.rank(), g.size());
      }
      case "all_reduce on a group one is not in" -> {
        Work unused = Distributed.newGroup(0).allReduce(one(1), ReduceOp.SUM);
        yield null;
      }
      case "get_process_group_ranks(None)" -> Distributed.world().ranks();
      case "src given as global rank in a subgroup" ->
          inSubset(
              g -> {
                Tensor t = one(rank);
                Distributed.broadcast(t, g.ranks().get(1), g, CollectiveOptions.SYNC).await();
                return t.item();
              });
      case "group_src in a subgroup" ->
          inSubset(
              g -> {
                Tensor t = one(rank);
                g.broadcast(t, 1).await();
                return t.item();
              });
      case "default group after destroying a subgroup" -> {
        ProcessGroup g = Distributed.newGroup(0, 1);
        if (g.isMember()) {
          g.destroy();
        }
        yield sum(Distributed.world());
      }
      default -> throw new CaseRunner.Mismatch("no code for " + name);
    };
  }

  private Object inSubset(Function<ProcessGroup, Object> call) {
    ProcessGroup g = Distributed.newGroup(subset, GroupOptions.DEFAULT);
    return g.isMember() ? call.apply(g) : OUTSIDE;
  }

  private ProcessGroup[] threeGroups() {
    return new ProcessGroup[] {
      Distributed.world(),
      Distributed.newGroup(all(), GroupOptions.DEFAULT),
      Distributed.newGroup(all(), GroupOptions.DEFAULT.withDescription("mine"))
    };
  }

  // ---- what the names say ----

  private int groupSize() {
    String size = name.substring("new_subgroups(".length(), name.length() - 1);
    return size.equals("W + 1") ? world + 1 : Integer.parseInt(size);
  }

  private List<Integer> ranks() {
    Matcher m = LIST.matcher(name);
    Json.require(m.find(), "no ranks in " + name);
    String inner = m.group().substring(1, m.group().length() - 1);
    return inner.isBlank()
        ? List.of()
        : Arrays.stream(inner.split(",", -1)).map(s -> Integer.parseInt(s.trim())).toList();
  }

  private static List<int[]> lists(String text) throws JsonProcessingException {
    Matcher m = LISTS.matcher(text);
    String found = m.find() ? m.group() : "[[0, 1], [1, 2]]"; // the overlapping ones
    return Arrays.asList(JSON.readValue(found, int[][].class));
  }

  private List<Integer> all() {
    return IntStream.range(0, world).boxed().toList();
  }

  // ---- results as the data shows them ----

  private static Map<String, @Nullable Object> subgroups(
      Subgroups groups, boolean sums, boolean count) {
    Map<String, @Nullable Object> out = new LinkedHashMap<>();
    ProcessGroup own = groups.own();
    out.put("own", sums ? two(own) : own == null ? null : shown(own));
    if (count) {
      out.put("count", groups.all().size());
    }
    out.put("all", groups.all().stream().map(GroupCalls::shown).toList());
    return out;
  }

  private static Map<String, @Nullable Object> two(@Nullable ProcessGroup g) {
    return ordered(
        "group",
        g == null ? null : shown(g),
        "sum_of_2_pow_rank",
        g == null || !g.isMember() ? null : sum(g));
  }

  private static Object shown(ProcessGroup g) {
    if (!g.isMember()) {
      return "NON_GROUP_MEMBER";
    }
    Map<String, @Nullable Object> out = ordered("ranks", g.ranks(), "size", g.size());
    out.put("group_rank", g.rank());
    // The host backend answers to gloo's name.
    String backend = g.backend("cpu").name();
    out.put("backend", backend.equals("host") ? "gloo" : backend);
    return out;
  }

  private static Map<String, @Nullable Object> ordered(
      String first, @Nullable Object one, String second, @Nullable Object two) {
    Map<String, @Nullable Object> out = new LinkedHashMap<>();
    out.put(first, one);
    out.put(second, two);
    return out;
  }

  private static double sum(ProcessGroup g) {
    Tensor t = one(1 << Distributed.rank());
    g.allReduce(t, ReduceOp.SUM).await();
    return t.item();
  }

  private static Tensor one(int value) {
    return Tensor.of(new float[] {value}, 1);
  }
}
