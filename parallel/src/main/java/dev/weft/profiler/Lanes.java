package dev.weft.profiler;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The lanes of one rank's trace: what is drawn in one never overlaps. One thread. */
final class Lanes {
  private static final int FIRST_GROUP = 1_000;
  private static final int FIRST_STREAM = 2_000;

  private final Map<Thread, Lane> threads = new LinkedHashMap<>();
  private final Map<String, Lane> groups = new LinkedHashMap<>();
  private final Map<String, Lane> streams = new LinkedHashMap<>();
  // Until when a lane of collectives is taken.
  private final Map<Integer, Long> taken = new HashMap<>();

  /** A lane; lanes are shown in the order of their numbers. */
  record Lane(int id, String name) {}

  /** Where and from when a collective is drawn. */
  record Place(int lane, long start) {}

  int thread(Thread thread) {
    return threads.computeIfAbsent(
            thread, t -> new Lane(1 + threads.size(), "thread " + t.getName()))
        .id;
  }

  int stream(String name) {
    return streams.computeIfAbsent(name, n -> new Lane(FIRST_STREAM + streams.size(), n)).id;
  }

  /**
   * Collectives of a group run one after the other, so one that was launched earlier starts when
   * the one before is done; messages run side by side.
   */
  Place collective(CommEvent comm, long start, long end) {
    String text = comm.group.description();
    String name = (text.isEmpty() ? comm.group.name() : text) + " " + comm.group.ranks();
    if (!comm.operation.equals("send") && !comm.operation.equals("recv")) {
      int lane = group("collectives of " + name);
      long from = Math.min(end, Math.max(start, taken.getOrDefault(lane, start)));
      taken.put(lane, end);
      return new Place(lane, from);
    }
    for (int i = 1; ; i++) {
      int lane = group("messages in " + name + (i == 1 ? "" : ", " + i));
      if (taken.getOrDefault(lane, start) <= start) {
        taken.put(lane, end);
        return new Place(lane, start);
      }
    }
  }

  private int group(String name) {
    return groups.computeIfAbsent(name, n -> new Lane(FIRST_GROUP + groups.size(), n)).id;
  }

  List<Lane> all() {
    List<Lane> all = new ArrayList<>(threads.values());
    all.addAll(groups.values());
    all.addAll(streams.values());
    return all;
  }
}
