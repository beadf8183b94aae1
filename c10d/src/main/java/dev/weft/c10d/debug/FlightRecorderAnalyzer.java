package dev.weft.c10d.debug;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.StreamSupport;
import org.jspecify.annotations.Nullable;

/**
 * Puts the dumps of all ranks side by side and says which call went wrong. Its verdicts are those
 * of PyTorch's analyzer, but where that one is known to err: messages concern their two ranks
 * alone, batches are matched message by message, and the sizes of all gathers are checked. Used
 * once, by one thread.
 */
public final class FlightRecorderAnalyzer {
  private static final int MISMATCH_CAP = 10;

  private final SortedMap<Integer, List<DumpEntry>> entries = new TreeMap<>();
  private final Map<String, DumpEntry.Group> groups = new LinkedHashMap<>();
  private final Set<DumpEntry> done = new HashSet<>();
  private final Set<String> broken = new HashSet<>();
  private final Analysis result;
  private final Messages messages;
  private final Explainer explainer;
  private int mismatches;

  private FlightRecorderAnalyzer(SortedMap<Integer, JsonNode> dumps, boolean allowIncomplete) {
    checkVersions(dumps);
    dumps.forEach(this::readGroups);
    if (!allowIncomplete) {
      checkComplete(dumps);
    }
    dumps.forEach(
        (rank, dump) -> {
          List<DumpEntry.Group> own = groupsOf(dump);
          List<DumpEntry> list = new ArrayList<>();
          dump.get("entries").forEach(e -> list.add(DumpEntry.of(rank, e, own)));
          list.forEach(CallCheck::known);
          entries.put(rank, list);
        });
    dropRolledOver();
    this.result = new Analysis(List.copyOf(groups.values()));
    this.messages = new Messages(entries);
    this.explainer = new Explainer(dumps, entries, result);
  }

  /**
   * Analyzes dumps.
   *
   * @param dumps by rank, as {@link DumpFiles#read} gives them
   * @param allowIncomplete whether ranks may be without a dump
   * @throws IllegalArgumentException if the dumps do not belong together or hold unknown calls
   */
  public static Analysis analyze(SortedMap<Integer, JsonNode> dumps, boolean allowIncomplete) {
    return new FlightRecorderAnalyzer(dumps, allowIncomplete).run();
  }

  // ---- reading ----

  private static void checkVersions(SortedMap<Integer, JsonNode> dumps) {
    Map<String, List<Integer>> versions = new TreeMap<>();
    dumps.forEach(
        (rank, dump) ->
            versions
                .computeIfAbsent(dump.path("version").asText(), v -> new ArrayList<>())
                .add(rank));
    if (versions.size() > 1) {
      throw new IllegalArgumentException(
          "the dumps have different schema versions, by ranks: " + versions);
    }
  }

  private static List<DumpEntry.Group> groupsOf(JsonNode dump) {
    List<DumpEntry.Group> out = new ArrayList<>();
    for (Map.Entry<String, JsonNode> e : dump.path("pg_config").properties()) {
      String text = e.getValue().path("ranks").asText().replaceAll("[\\[\\](){} ]", "");
      List<Integer> ranks = new ArrayList<>();
      for (String r : text.split(",", -1)) {
        if (!r.isEmpty()) {
          ranks.add(Integer.parseInt(r));
        }
      }
      out.add(new DumpEntry.Group(e.getKey(), e.getValue().path("desc").asText(), ranks));
    }
    return out;
  }

  private void readGroups(int rank, JsonNode dump) {
    for (DumpEntry.Group g : groupsOf(dump)) {
      DumpEntry.Group there = groups.putIfAbsent(g.key(), g);
      if (there != null && !there.description().equals(g.description())) {
        throw new IllegalArgumentException(
            "rank "
                + rank
                + " describes group '"
                + g.name()
                + "' as '"
                + g.description()
                + "', another as '"
                + there.description()
                + "'; the dumps are not of one job");
      }
    }
  }

  private void checkComplete(SortedMap<Integer, JsonNode> dumps) {
    Set<Integer> missing = new TreeSet<>();
    groups.values().forEach(g -> missing.addAll(g.ranks()));
    missing.removeAll(dumps.keySet());
    if (!missing.isEmpty()) {
      throw new IllegalArgumentException("there is no dump of ranks " + missing);
    }
  }

  /** What one rank's full ring has forgotten cannot be looked for on the others. */
  private void dropRolledOver() {
    for (Map.Entry<Integer, List<DumpEntry>> rolled : List.copyOf(entries.entrySet())) {
      List<DumpEntry> kept = rolled.getValue();
      if (kept.isEmpty() || kept.get(0).recordId() == 0) {
        continue;
      }
      long since = kept.get(0).node.path("time_created_ns").asLong();
      for (List<DumpEntry> others : entries.values()) {
        others.removeIf(
            e ->
                e.rank != rolled.getKey()
                    && e.group.ranks().contains(rolled.getKey())
                    && isForgotten(e, kept, since));
      }
    }
  }

  private static boolean isForgotten(DumpEntry e, List<DumpEntry> kept, long since) {
    for (DumpEntry k : kept) {
      if (k.group.key().equals(e.group.key()) && k.isP2p() == e.isP2p()) {
        return number(e) < number(k);
      }
    }
    return e.node.path("time_created_ns").asLong() < since;
  }

  private static long number(DumpEntry e) {
    return e.isP2p() ? e.p2pSequence() : e.sequence();
  }

  // ---- matching ----

  private Analysis run() {
    for (List<DumpEntry> list : entries.values()) {
      for (DumpEntry e : list) {
        if (mismatches >= MISMATCH_CAP) {
          result.finding("more than " + MISMATCH_CAP + " mismatches; the rest was not looked at");
          break;
        }
        if (!done.contains(e)) {
          take(e);
        }
      }
    }
    explainer.conclude();
    return result;
  }

  private void take(DumpEntry e) {
    if (!e.isP2p()) {
      collective(e);
      return;
    }
    List<DumpEntry> batch = messages.batchOf(e);
    if (batch.size() > 1) {
      done.addAll(batch);
      batch(batch);
    } else {
      message(e);
    }
  }

  private void collective(DumpEntry first) {
    Map<Integer, DumpEntry> there = new TreeMap<>();
    List<Integer> missing = new ArrayList<>();
    boolean undecided = false;
    for (int rank : first.group.ranks()) {
      DumpEntry other = rank == first.rank ? first : find(rank, first);
      if (other != null) {
        there.put(rank, other);
      } else if (entries.containsKey(rank)) {
        missing.add(rank);
      } else {
        undecided = true;
      }
    }
    done.addAll(there.values());
    Map<DumpEntry, CallCheck.Mismatch> wrong = new LinkedHashMap<>();
    there.forEach(
        (rank, e) -> {
          CallCheck.@Nullable Mismatch m = e == first ? null : CallCheck.between(first, e);
          if (m != null) {
            wrong.put(e, m);
          }
        });
    boolean complete = missing.isEmpty() && !undecided;
    long in = there.values().stream().mapToLong(e -> DumpEntry.numel(e.inputs())).sum();
    long out = there.values().stream().mapToLong(e -> DumpEntry.numel(e.outputs())).sum();
    boolean unbalanced =
        complete && wrong.isEmpty() && first.operation.equals("all_to_all") && in != out;
    if (unbalanced) {
      wrong.put(first, CallCheck.Mismatch.SIZE_OR_SYNTAX_MISMATCH);
    }
    ObjectNode verdict = result.verdict(first, wrong.isEmpty(), first.group.ranks());
    if (unbalanced) {
      verdict.put("input_numel", in).put("output_numel", out);
    }
    wrong.forEach((e, m) -> Analysis.mismatch(verdict, e, m));
    if (!missing.isEmpty()) {
      result.missing(verdict, missing);
      explainer.missing(first, there, missing);
    }
    if (!wrong.isEmpty()) {
      mismatches++;
      broken.add(first.group.key());
      explainer.mismatch(first, there, wrong);
    }
    boolean good = complete && wrong.isEmpty() && !broken.contains(first.group.key());
    there.keySet().forEach(rank -> result.count(rank, good));
  }

  private @Nullable DumpEntry find(int rank, DumpEntry like) {
    for (DumpEntry e : entries.getOrDefault(rank, List.of())) {
      if (!done.contains(e)
          && !e.isP2p()
          && e.sequence() == like.sequence()
          && e.group.key().equals(like.group.key())) {
        return e;
      }
    }
    return null;
  }

  private void message(DumpEntry e) {
    done.add(e);
    int peer = e.operation.equals("send") ? e.destination : e.source;
    if (peer < 0) { // a receive from any that nothing came to
      DumpEntry partner = messages.partner(e);
      peer = partner == null ? e.rank : partner.rank;
    }
    List<Integer> both = peer == e.rank ? List.of(peer) : List.of(e.rank, peer);
    DumpEntry partner = messages.partner(e);
    if (partner == null) {
      partner = messages.anyBetween(e, peer, done);
    }
    if (partner == null) {
      ObjectNode verdict = result.verdict(e, true, both);
      if (entries.containsKey(peer)) {
        result.missing(verdict, List.of(peer));
        explainer.noPartner(e, peer);
      }
      result.count(e.rank, false);
      return;
    }
    boolean fits =
        e.complements(partner) && DumpEntry.numel(e.inputs()) == DumpEntry.numel(partner.inputs());
    ObjectNode verdict = result.verdict(e, fits, both);
    boolean batched = messages.batchOf(partner).size() > 1;
    if (!fits) {
      mismatches++;
      broken.add(e.group.key());
      Analysis.mismatch(verdict, partner, CallCheck.Mismatch.SIZE_OR_SYNTAX_MISMATCH);
      explainer.messageMismatch(e, partner);
    }
    boolean good = fits && !broken.contains(e.group.key());
    result.count(e.rank, good);
    if (!batched) {
      done.add(partner);
      result.count(partner.rank, good);
    }
  }

  /** A batch counts as one call; it is good when each of its messages is. */
  private void batch(List<DumpEntry> batch) {
    DumpEntry first = batch.get(0);
    boolean good = true;
    Set<Integer> ranks = new TreeSet<>();
    ranks.add(first.rank);
    for (DumpEntry e : batch) {
      if (!e.isMessage()) {
        continue;
      }
      DumpEntry partner = messages.partner(e);
      if (partner == null) {
        good = false;
        int peer = e.operation.equals("send") ? e.destination : e.source;
        if (entries.containsKey(peer)) {
          explainer.noPartner(e, peer);
        }
      } else {
        ranks.add(partner.rank);
        if (DumpEntry.numel(e.inputs()) != DumpEntry.numel(partner.inputs())) {
          good = false;
          if (e.operation.equals("send")) {
            explainer.messageMismatch(e, partner);
          }
        }
      }
    }
    if (good && messages.isFirstOfItsExchange(batch)) {
      ObjectNode unused = result.verdict(first, true, List.copyOf(ranks));
    }
    result.count(first.rank, good && !broken.contains(first.group.key()));
  }

  /** The entries of a dump, for tests of what a rank has written. */
  static List<JsonNode> entriesOf(JsonNode dump) {
    return StreamSupport.stream(dump.path("entries").spliterator(), false).toList();
  }
}
