package dev.weft.c10d;

import java.util.List;
import java.util.stream.IntStream;

/** Groups whose backends are made from another group's connections. Stateless. */
final class GroupDivision {
  private GroupDivision() {}

  /**
   * After a group was divided: makes the parts' backends from the group's own, where that can. All
   * ranks of the group come here, also those in no part.
   */
  static void split(ProcessGroup parent, Subgroups parts) {
    for (String type : parent.backends().deviceTypes()) {
      Backend backend = parent.backends().made(type);
      if (backend == null || !backend.canDivide()) {
        continue;
      }
      ProcessGroup own = parts.own();
      Backend made =
          backend.split(
              own == null ? null : own.backends().context(),
              own == null ? 0 : parts.all().indexOf(own),
              own == null ? 0 : own.rank());
      if (own != null && made != null) {
        own.backends().adopt(type, made);
      }
    }
  }

  static ProcessGroup shrink(ProcessGroup group, List<Integer> excluded, boolean abort) {
    List<Integer> rest =
        IntStream.range(0, group.size())
            .filter(r -> !excluded.contains(r))
            .mapToObj(group::globalRank)
            .toList();
    if (excluded.isEmpty() || excluded.stream().anyMatch(r -> r < 0 || r >= group.size())) {
      throw new IllegalArgumentException(
          "shrink_group: excluded is "
              + excluded
              + "; expected group ranks of 0 to "
              + (group.size() - 1));
    }
    if (excluded.contains(group.rank())) {
      throw new IllegalArgumentException(
          "shrink_group: excluded "
              + excluded
              + " has this rank itself, group rank "
              + group.rank()
              + "; only the ranks that are left call it");
    }
    int[] out = excluded.stream().mapToInt(Integer::intValue).toArray();
    ProcessGroup made =
        group
            .context()
            .groups()
            .make(
                rest,
                GroupOptions.DEFAULT
                    .withBackend(group.backendConfig())
                    .withTimeout(group.timeout())
                    .keepOrder());
    boolean any = false;
    try {
      for (String type : group.backends().deviceTypes()) {
        Backend backend = group.backends().made(type);
        GroupContext context = made.backends().context();
        if (backend != null && context != null && backend.canShrink()) {
          made.backends().adopt(type, backend.shrink(context, out, abort));
          any = true;
        }
      }
    } catch (RuntimeException | Error e) {
      made.destroy();
      throw e;
    }
    if (!any) {
      made.destroy();
      throw new UnsupportedOperationException(
          "shrink_group: no backend of group "
              + group.describe()
              + " ("
              + group.backendConfig()
              + ") can shrink; expected nccl with a communicator");
    }
    return made;
  }
}
