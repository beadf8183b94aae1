package dev.weft.c10d;

import java.time.Duration;
import java.util.List;

/** Who is in a group, and which of them this rank is. Immutable. */
record Membership(
    RankContext context,
    String name,
    String description,
    List<Integer> ranks,
    int rank,
    Duration timeout) {

  Membership {
    ranks = List.copyOf(ranks);
  }

  int size() {
    return ranks.size();
  }

  int globalRank(int groupRank) {
    if (groupRank < 0 || groupRank >= ranks.size()) {
      throw new IllegalArgumentException(
          "group rank " + groupRank + " is not in group " + describe() + " of size " + size());
    }
    return ranks.get(groupRank);
  }

  int groupRank(int globalRank) {
    int at = ranks.indexOf(globalRank);
    if (at < 0) {
      throw new IllegalArgumentException(
          "global rank " + globalRank + " is no member of group " + describe());
    }
    return at;
  }

  /** The name, with the description where there is one, and the members. */
  String describe() {
    return Texts.group(name, description, ranks);
  }
}
