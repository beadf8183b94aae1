package dev.weft.c10d.debug;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;

/** What the dumps of all ranks say. Not thread-safe while the analyzer fills it, then read-only. */
public final class Analysis {
  private final ArrayNode collectives = JsonNodeFactory.instance.arrayNode();
  private final SortedMap<Integer, int[]> calls = new TreeMap<>();
  private final List<DumpEntry.Group> groups;
  private final List<String> findings = new ArrayList<>();
  private boolean troubled;

  Analysis(List<DumpEntry.Group> groups) {
    this.groups = groups;
  }

  /** True when every call of every rank met its counterparts. */
  public boolean isClean() {
    return !troubled && calls.values().stream().allMatch(c -> c[1] == 0);
  }

  /** What went wrong, in plain words, the most telling first; empty when all is well. */
  public List<String> findings() {
    return List.copyOf(findings);
  }

  /** The number of calls of all ranks that met their counterparts. */
  public int matchedCalls() {
    return calls.values().stream().mapToInt(c -> c[0]).sum();
  }

  /** The ranks that have calls in their dumps. */
  public List<Integer> ranks() {
    return List.copyOf(calls.keySet());
  }

  void count(int rank, boolean matched) {
    calls.computeIfAbsent(rank, r -> new int[2])[matched ? 0 : 1]++;
  }

  void finding(String text) {
    findings.add(text);
  }

  void firstFinding(String text) {
    findings.add(0, text);
  }

  /** Starts the verdict on a collective or message. */
  ObjectNode verdict(DumpEntry e, boolean pass, List<Integer> expected) {
    ObjectNode out = collectives.addObject();
    out.put("pass_check", pass)
        .put("group", e.group.label())
        .put("collective_seq_id", e.sequence())
        .put("p2p_seq_id", e.p2pSequence())
        .put("record_id", e.recordId())
        .put("name", e.profilingName())
        .put("state", e.state());
    ArrayNode ranks = out.putArray("expected_ranks");
    expected.stream().sorted().forEach(ranks::add);
    troubled |= !pass;
    return out;
  }

  void missing(ObjectNode verdict, List<Integer> ranks) {
    ArrayNode missing = verdict.putArray("missing_ranks");
    ranks.forEach(missing::add);
    troubled = true;
  }

  static void mismatch(ObjectNode verdict, DumpEntry culprit, CallCheck.Mismatch type) {
    ObjectNode one = verdict.withObject("/mismatches").putObject(String.valueOf(culprit.rank));
    one.put("type", type.name()).put("name", culprit.profilingName());
    one.set("input_sizes", culprit.node.path("input_sizes"));
    one.set("output_sizes", culprit.node.path("output_sizes"));
    one.put("state", culprit.state());
  }

  /** The verdicts in the form that PyTorch's analyzer gives them. */
  public ObjectNode toJson() {
    ObjectNode out = JsonNodeFactory.instance.objectNode();
    out.put("clean", isClean());
    out.set("collectives", collectives);
    ObjectNode perRank = out.putObject("calls_per_rank");
    calls.forEach(
        (rank, c) ->
            perRank.putObject(String.valueOf(rank)).put("matched", c[0]).put("unmatched", c[1]));
    ArrayNode all = out.putArray("groups");
    groups.stream()
        .sorted(
            java.util.Comparator.comparing(DumpEntry.Group::description)
                .thenComparing(g -> g.ranks().size()))
        .forEach(g -> all.addArray().add(g.description()).add(g.ranks().size()));
    return out;
  }
}
