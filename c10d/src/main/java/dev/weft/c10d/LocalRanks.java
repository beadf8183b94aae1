package dev.weft.c10d;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** The ranks of one world of threads, as they see each other. Thread-safe. */
final class LocalRanks {
  private final List<RankContext> all = new CopyOnWriteArrayList<>();

  void add(RankContext rank) {
    all.add(rank);
  }

  List<RankContext> all() {
    return all;
  }
}
