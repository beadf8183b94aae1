package dev.weft.c10d.debug;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** Says in plain words what the analyzer finds. One thread. */
final class Explainer {
  private final SortedMap<Integer, JsonNode> dumps;
  private final SortedMap<Integer, List<DumpEntry>> entries;
  private final Analysis result;
  private final Set<Integer> suspects = new LinkedHashSet<>();

  Explainer(
      SortedMap<Integer, JsonNode> dumps,
      SortedMap<Integer, List<DumpEntry>> entries,
      Analysis result) {
    this.dumps = dumps;
    this.entries = entries;
    this.result = result;
  }

  void missing(DumpEntry first, Map<Integer, DumpEntry> there, List<Integer> missing) {
    StringBuilder text = new StringBuilder();
    text.append(ranks(there.keySet()))
        .append(there.size() == 1 ? " waits in " : " wait in ")
        .append(first.call())
        .append(" of ")
        .append(first.group.words())
        .append(first.where())
        .append("; ")
        .append(ranks(missing))
        .append(" never called it");
    for (int rank : missing) {
      DumpEntry stuck = stuckElsewhere(rank);
      DumpEntry last = last(rank, first.group);
      if (stuck != null) {
        text.append("; rank ").append(rank).append(" is itself stuck in ").append(stuck.call());
        text.append(" of ").append(stuck.group.words()).append(stuck.where());
      } else {
        suspects.add(rank);
        text.append("; the last call of rank ").append(rank).append(" there was ");
        text.append(last == null ? "none" : last.call() + ", " + last.state() + last.where());
      }
    }
    result.finding(text.toString());
  }

  void mismatch(
      DumpEntry first, Map<Integer, DumpEntry> there, Map<DumpEntry, CallCheck.Mismatch> wrong) {
    for (Map.Entry<DumpEntry, CallCheck.Mismatch> w : wrong.entrySet()) {
      DumpEntry e = w.getKey();
      String text =
          e == first
              ? "the elements that the ranks send and receive do not add up in "
                  + first.call()
                  + " of "
                  + first.group.words()
                  + ": "
                  + there.values().stream().map(x -> "rank " + x.rank + " " + x.data()).toList()
              : first.group.words()
                  + ": rank "
                  + first.rank
                  + " called "
                  + first.call()
                  + " with "
                  + first.data()
                  + first.where()
                  + ", rank "
                  + e.rank
                  + " "
                  + (e.operation.equals(first.operation) ? "" : e.operation + " ")
                  + "with "
                  + e.data()
                  + e.where()
                  + ": "
                  + w.getValue().words()
                  + skipped(first, e);
      result.finding(text);
      if (e != first) {
        suspects.add(e.rank);
      }
    }
  }

  /** Where a rank's call is the others' next one, it has left one out. */
  private String skipped(DumpEntry first, DumpEntry e) {
    if (e.looksLike(next(first))) {
      return "; it looks as if rank " + e.rank + " left out this " + first.operation;
    }
    if (first.looksLike(next(e))) {
      return "; it looks as if rank " + first.rank + " left out this " + e.operation;
    }
    return "";
  }

  private @Nullable DumpEntry next(DumpEntry after) {
    for (DumpEntry e : entries.getOrDefault(after.rank, List.of())) {
      if (!e.isP2p()
          && e.group.key().equals(after.group.key())
          && e.sequence() == after.sequence() + 1) {
        return e;
      }
    }
    return null;
  }

  void noPartner(DumpEntry e, int peer) {
    String verb = e.operation.equals("send") ? "did not receive" : "did not send";
    result.finding(
        "rank "
            + e.rank
            + " waits in "
            + e.call()
            + " of "
            + e.group.words()
            + e.where()
            + ": "
            + (peer == e.rank ? "nobody sent" : "rank " + peer + " " + verb)
            + " it");
    if (peer != e.rank && stuckElsewhere(peer) == null) {
      suspects.add(peer);
    }
  }

  void messageMismatch(DumpEntry e, DumpEntry partner) {
    result.finding(
        "rank "
            + e.rank
            + " called "
            + e.call()
            + " with "
            + e.data()
            + e.where()
            + ", rank "
            + partner.rank
            + " "
            + partner.call()
            + " with "
            + partner.data()
            + partner.where()
            + ": they do not fit together");
  }

  /** The summary, and what the ranks said themselves. */
  void conclude() {
    if (!suspects.isEmpty()) {
      result.firstFinding("look first at " + ranks(new TreeSet<>(suspects)));
    }
    Set<Integer> absent = new TreeSet<>();
    entries.values().forEach(l -> l.forEach(e -> absent.addAll(e.group.ranks())));
    absent.removeAll(dumps.keySet());
    if (!absent.isEmpty()) {
      result.finding(
          "there is no dump of "
              + ranks(absent)
              + ": killed, or not of this job; calls with them could not be checked");
    }
    dumps.forEach(
        (rank, dump) -> {
          for (JsonNode event : dump.path("weft_events")) {
            if (event.path("kind").asText().equals("failure")) {
              result.finding("rank " + rank + " failed with: " + event.path("text").asText());
            }
          }
        });
  }

  /** The call that keeps a rank from coming: one that is neither done nor given up. */
  private @Nullable DumpEntry stuckElsewhere(int rank) {
    for (DumpEntry e : entries.getOrDefault(rank, List.of())) {
      boolean timedOut = e.node.path("retired").asBoolean() && !e.isCompleted();
      if ((!e.isCompleted() || timedOut) && !e.operation.equals("coalesced")) {
        return e;
      }
    }
    return null;
  }

  private @Nullable DumpEntry last(int rank, DumpEntry.Group group) {
    DumpEntry found = null;
    for (DumpEntry e : entries.getOrDefault(rank, List.of())) {
      if (!e.isP2p() && e.group.key().equals(group.key())) {
        found = e;
      }
    }
    return found;
  }

  private static String ranks(Iterable<Integer> ranks) {
    List<Integer> all = new ArrayList<>();
    ranks.forEach(all::add);
    return all.size() == 1 ? "rank " + all.get(0) : "ranks " + all;
  }
}
