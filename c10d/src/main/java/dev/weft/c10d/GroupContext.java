package dev.weft.c10d;

import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a backend knows of the group it serves. Immutable.
 *
 * @param rankContext the calling rank's state: its world, store and peers
 * @param name the group's name, the same on all members and different from all other groups'
 * @param description what the group is for, or empty
 * @param ranks global ranks in group-rank order
 * @param groupRank this rank's position among them
 * @param timeout how long an operation may take unless the call says otherwise
 * @param options for backends of the kind that they are of; null for none
 */
public record GroupContext(
    RankContext rankContext,
    String name,
    String description,
    List<Integer> ranks,
    int groupRank,
    Duration timeout,
    @Nullable BackendOptions options) {
  /** Copies the list. */
  public GroupContext {
    ranks = List.copyOf(ranks);
  }

  /** The group in a message, such as {@code 'group[0,1]#1 (tp)' of ranks [0, 1]}. */
  public String describe() {
    return Texts.group(name, description, ranks);
  }

  /** The number of members. */
  public int size() {
    return ranks.size();
  }
}
