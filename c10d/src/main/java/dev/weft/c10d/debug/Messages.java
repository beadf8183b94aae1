package dev.weft.c10d.debug;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import org.jspecify.annotations.Nullable;

/**
 * Which send belongs to which receive: between two ranks of a group, in the order of the calls. A
 * batch is what shares a message number on one rank.
 */
final class Messages {
  private final SortedMap<Integer, List<DumpEntry>> entries;
  private final Map<DumpEntry, DumpEntry> partners = new HashMap<>();
  private final Map<String, List<DumpEntry>> batches = new HashMap<>();
  private final Set<String> told = new HashSet<>();

  Messages(SortedMap<Integer, List<DumpEntry>> entries) {
    this.entries = entries;
    for (List<DumpEntry> list : entries.values()) {
      for (DumpEntry e : list) {
        if (e.isP2p()) {
          batches.computeIfAbsent(batchKey(e), k -> new ArrayList<>()).add(e);
        }
      }
    }
    // Those that name their source first: a receive from any takes what is left.
    pair(false);
    pair(true);
  }

  private void pair(boolean any) {
    for (List<DumpEntry> list : entries.values()) {
      for (DumpEntry e : list) {
        if (e.operation.equals("recv") && (e.source < 0) == any) {
          DumpEntry send = freeSend(e);
          if (send != null) {
            partners.put(e, send);
            partners.put(send, e);
          }
        }
      }
    }
  }

  private @Nullable DumpEntry freeSend(DumpEntry receive) {
    for (Map.Entry<Integer, List<DumpEntry>> rank : entries.entrySet()) {
      if (receive.source >= 0 && rank.getKey() != receive.source) {
        continue;
      }
      for (DumpEntry e : rank.getValue()) {
        if (e.operation.equals("send") && !partners.containsKey(e) && e.complements(receive)) {
          return e;
        }
      }
    }
    return null;
  }

  private static String batchKey(DumpEntry e) {
    return e.rank + "/" + e.group.key() + "/" + e.p2pSequence();
  }

  @Nullable DumpEntry partner(DumpEntry e) {
    return partners.get(e);
  }

  List<DumpEntry> batchOf(DumpEntry e) {
    return batches.getOrDefault(batchKey(e), List.of(e));
  }

  /** A message between the same two ranks that cannot be the other side: both send, or receive. */
  @Nullable DumpEntry anyBetween(DumpEntry e, int peer, Set<DumpEntry> done) {
    for (DumpEntry other : entries.getOrDefault(peer, List.of())) {
      if (other != e
          && other.isMessage()
          && !done.contains(other)
          && !partners.containsKey(other)
          && other.group.key().equals(e.group.key())
          && (other.destination == e.rank || other.source == e.rank)) {
        return other;
      }
    }
    return null;
  }

  /** False when a batch at the other end of its messages has been reported already. */
  boolean isFirstOfItsExchange(List<DumpEntry> batch) {
    boolean first = true;
    for (DumpEntry e : batch) {
      DumpEntry partner = partners.get(e);
      first &= partner == null || !told.contains(batchKey(partner));
    }
    told.add(batchKey(batch.get(0)));
    return first;
  }
}
