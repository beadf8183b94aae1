package dev.weft.c10d;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The groups of one rank. Thread-safe.
 *
 * <p>A group's name is made of its members and of how many groups with the same members this rank
 * made before. Members alone decide it, so it is the same on all of them whatever other groups each
 * has made, and nobody else needs to take part.
 */
final class GroupTable {
  private static final Duration CLOSE_LIMIT = Duration.ofSeconds(10);

  private final RankContext context;
  private final BackendConfig config;
  private final Map<List<Integer>, Integer> made = new HashMap<>();
  private final Set<ProcessGroup> live = new LinkedHashSet<>();
  private final ProcessGroup world;

  GroupTable(RankContext context, BackendConfig config) {
    this.context = context;
    this.config = config;
    List<Integer> all = IntStream.range(0, context.worldSize()).boxed().toList();
    this.world = add("world", "", all, config, context.timeout(), null);
  }

  ProcessGroup world() {
    return world;
  }

  /** Makes a group of global ranks; a marker where this rank is no member. */
  ProcessGroup make(List<Integer> ranks, GroupOptions options) {
    check(ranks);
    List<Integer> members = options.sortRanks() ? ranks.stream().sorted().toList() : ranks;
    String backend = options.backend();
    BackendConfig backends = backend == null ? config : BackendConfig.parse(backend);
    Duration timeout = options.timeout() == null ? context.timeout() : options.timeout();
    if (!members.contains(context.rank())) {
      String name = name(members, 0).replace("#0", "");
      Membership outside =
          new Membership(context, name, options.description(), members, -1, timeout);
      return new ProcessGroup(outside, new GroupBackends(null, backends));
    }
    synchronized (this) {
      int number = made.merge(members, 1, Integer::sum);
      return add(
          name(members, number),
          options.description(),
          members,
          backends,
          timeout,
          options.backendOptions());
    }
  }

  private synchronized ProcessGroup add(
      String name,
      String description,
      List<Integer> members,
      BackendConfig backends,
      Duration timeout,
      @Nullable BackendOptions options) {
    int rank = members.indexOf(context.rank());
    Membership membership = new Membership(context, name, description, members, rank, timeout);
    GroupContext group =
        new GroupContext(context, name, description, members, rank, timeout, options);
    ProcessGroup made = new ProcessGroup(membership, new GroupBackends(group, backends));
    live.add(made);
    context.flightRecorder().event("group_made", made.describe());
    return made;
  }

  private void check(List<Integer> ranks) {
    if (ranks.isEmpty()) {
      throw new IllegalArgumentException("ranks is empty; expected at least one rank");
    }
    if (new HashSet<>(ranks).size() != ranks.size()) {
      throw new IllegalArgumentException("ranks " + ranks + " names a rank twice");
    }
    for (int r : ranks) {
      if (r < 0 || r >= context.worldSize()) {
        throw new IllegalArgumentException(
            "ranks " + ranks + " has rank " + r + "; expected 0 to " + (context.worldSize() - 1));
      }
    }
  }

  private static String name(List<Integer> members, int number) {
    String text = Texts.ranks(members).replace(" ", "");
    if (text.length() > 40) {
      text = "[" + members.size() + " ranks " + digest(text) + "]";
    }
    return "group" + text + "#" + number;
  }

  private static String digest(String text) {
    try {
      byte[] hash =
          MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
      return HexFormat.of().formatHex(hash, 0, 8);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }

  int liveCount() {
    synchronized (this) {
      return live.size();
    }
  }

  void destroy(ProcessGroup group) {
    if (group == world) {
      context.close(CLOSE_LIMIT);
      return;
    }
    synchronized (this) {
      if (!live.remove(group)) {
        return;
      }
    }
    context.flightRecorder().event("group_destroyed", group.describe());
    group.backends().close(CLOSE_LIMIT);
  }

  void destroyAll(Duration limit) {
    List<ProcessGroup> all;
    synchronized (this) {
      all = new ArrayList<>(live);
      live.clear();
    }
    Deadline deadline = Deadline.after(limit);
    for (int i = all.size() - 1; i >= 0; i--) {
      all.get(i).backends().close(deadline.remaining());
    }
  }

  /** Ends what is under way in all groups. */
  void abortAll(Throwable cause) {
    List<ProcessGroup> all;
    synchronized (this) {
      all = new ArrayList<>(live);
    }
    all.forEach(g -> g.abort(cause));
  }

  /** Splits a list into groups of equal size, in order; the caller's own is among them. */
  Subgroups subgroups(List<List<Integer>> lists, GroupOptions options) {
    Set<Integer> seen = new HashSet<>();
    for (List<Integer> list : lists) {
      check(list);
      for (int r : list) {
        if (!seen.add(r)) {
          throw new IllegalArgumentException(
              "rank " + r + " is in two of the subgroups " + lists + "; expected at most one");
        }
      }
    }
    @Nullable ProcessGroup own = null;
    List<ProcessGroup> all = new ArrayList<>();
    for (List<Integer> list : lists) {
      ProcessGroup group = make(list, options);
      all.add(group);
      if (group.isMember()) {
        own = group;
      }
    }
    return new Subgroups(own, all);
  }
}
