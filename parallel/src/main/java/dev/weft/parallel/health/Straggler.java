package dev.weft.parallel.health;

import java.util.List;
import java.util.Locale;

/**
 * A rank for which the others of a group wait. Immutable.
 *
 * @param rank its global rank
 * @param group the group's name
 * @param ranks the global ranks of the group
 * @param collectives how many collectives of the group were looked at
 * @param last in how many of them it came last
 * @param lateSeconds how much later than the typical other rank it came, all of them together
 * @param share the same as a part of the time that was looked at, from 0 to 1
 */
public record Straggler(
    int rank,
    String group,
    List<Integer> ranks,
    int collectives,
    int last,
    double lateSeconds,
    double share) {
  /** Copies the list. */
  public Straggler {
    ranks = List.copyOf(ranks);
  }

  /** In plain words. */
  @Override
  public String toString() {
    return String.format(
        Locale.ROOT,
        "rank %d is slow: over %d collectives of group '%s' of ranks %s it came %.1f ms later than"
            + " the others in all, last in %d; they spent %.0f %% of the time waiting for it",
        rank,
        collectives,
        group,
        ranks,
        1e3 * lateSeconds,
        last,
        100 * share);
  }
}
