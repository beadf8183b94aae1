package dev.weft.c10d.host;

import dev.weft.c10d.GroupContext;
import dev.weft.c10d.RendezvousException;
import java.util.Map;

/**
 * What decides how a group's ranks exchange messages, and must be the same on all of them: what
 * {@link HostOptions} or the environment say. Immutable.
 *
 * @param options the named algorithms
 * @param hierarchical from how many bytes on an all-reduce goes inside hosts first; negative for
 *     never
 */
record MessageSettings(HostOptions options, long hierarchical) {
  /** More bytes than there can be. */
  static final long NEVER = Long.MAX_VALUE;

  private static final String ALL_REDUCE = "all_reduce";
  private static final int PHASE = 5;
  private static final String SEPARATOR = "\n";

  /**
   * This rank's settings.
   *
   * @throws IllegalArgumentException if a variable does not read as it should
   */
  static MessageSettings of(GroupContext group) {
    Map<String, String> environment = group.rankContext().environment();
    HostOptions named = group.options() instanceof HostOptions given ? given : named(environment);
    return new MessageSettings(named, SharedSizes.hierarchical(environment));
  }

  /**
   * Reads the variable of named algorithms before its use.
   *
   * @throws IllegalArgumentException if it does not read as it should
   */
  static void check(Map<String, String> environment) {
    HostOptions unused = named(environment);
  }

  private static HostOptions named(Map<String, String> environment) {
    return HostOptions.parse(
        HostOptions.VARIABLE, environment.getOrDefault(HostOptions.VARIABLE, ""));
  }

  /**
   * Tells the other ranks of a group, in its first collective.
   *
   * @param host this rank's machine
   * @return the ranks' machines, by group rank
   * @throws RendezvousException if the ranks' settings differ, on all ranks
   */
  String[] meet(Round round, String host) {
    HostGroup group = round.group();
    String told = String.join(SEPARATOR, options.text(), bytes(), host);
    round.tell(PHASE, told);
    String[] texts = round.toldByAll(PHASE, told);
    String[][] all = new String[texts.length][];
    String[] hosts = new String[texts.length];
    for (int r = 0; r < all.length; r++) {
      all[r] = texts[r].split(SEPARATOR, 3);
      hosts[r] = all[r][2];
    }
    for (int r = 1; r < all.length; r++) {
      differ(group, all, r, 0, HostOptions.VARIABLE + " (or the group's HostOptions)");
      differ(group, all, r, 1, SharedSizes.HIERARCHICAL);
    }
    return hosts;
  }

  private static void differ(
      HostGroup group, String[][] all, int rank, int field, String variable) {
    String first = all[0][field];
    String other = all[rank][field];
    if (!first.equals(other)) {
      throw new RendezvousException(
          variable
              + " is '"
              + first
              + "' on rank "
              + group.globalRank(0)
              + " and '"
              + other
              + "' on rank "
              + group.globalRank(rank)
              + "; expected the same on all ranks of group "
              + group.describe());
    }
  }

  private String bytes() {
    return hierarchical < 0 ? "off" : String.valueOf(hierarchical);
  }

  /** What is named, to follow a description; or empty. */
  String describe() {
    String named = options.text();
    return named.isEmpty() ? "" : " (" + named.replace(",", ", ") + ")";
  }

  /**
   * From how many bytes on an all-reduce goes inside hosts first: all of them where that is named,
   * {@link #NEVER} where it is off or another way is named.
   */
  long hierarchicalBytes() {
    String name = options.algorithms().get(ALL_REDUCE);
    if (name == null) {
      return hierarchical < 0 ? NEVER : hierarchical;
    }
    return name.equals(MessageAlgorithm.HIERARCHICAL.value()) ? 0 : NEVER;
  }

  /** The algorithm of an operation: what is named, or else the table's. */
  MessageAlgorithm choose(String operation, MessageAlgorithm otherwise) {
    String name = options.algorithms().get(operation);
    return name == null ? otherwise : MessageAlgorithm.of("algorithms", operation, name);
  }
}
