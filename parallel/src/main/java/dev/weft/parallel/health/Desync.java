package dev.weft.parallel.health;

import java.util.List;
import java.util.stream.Collectors;

/**
 * A tensor whose replicas are not equal to the bit. Immutable.
 *
 * @param name the tensor's
 * @param group the name of the group that should have it alike
 * @param versions the global ranks that have the same bits, the most ranks first
 */
public record Desync(String name, String group, List<List<Integer>> versions) {
  /** Copies the lists. */
  public Desync {
    versions = versions.stream().map(List::copyOf).toList();
  }

  /** In plain words; ranks in the minority are named as those that differ. */
  @Override
  public String toString() {
    boolean tie = versions.get(0).size() == versions.get(1).size();
    String who =
        tie
            ? versions.stream().map(v -> "ranks " + v).collect(Collectors.joining(" against "))
            : versions.stream().skip(1).map(v -> "ranks " + v).collect(Collectors.joining(" and "))
                + " from ranks "
                + versions.get(0);
    return "parameter '%s' differs between replicas of group '%s': %s".formatted(name, group, who);
  }
}
