package dev.weft.parallel.health;

import dev.weft.c10d.ObjectCollectives;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.debug.RecordedCall;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;

/**
 * Finds slow ranks from when they arrive at collectives, before anything fails. Used by the thread
 * that acts for a rank, on all members of the groups alike.
 *
 * <p>No clocks are compared. A collective in which all wait for all (all-reduce, all-gather,
 * reduce-scatter, all-to-all, barrier) ends about everywhere at once, so who came later was in it
 * for less time: a rank's lateness is the median time of the other ranks in the call, less its own.
 * Lateness is summed with its sign over the collectives since the last check, which lets noise
 * cancel out, and compared with the time that passed. The times are those of the flight recorder.
 *
 * <p>On a GPU a call's time begins when the host launches it and ends when the GPU has done it, so
 * a rank whose host runs ahead of a slow GPU is found later, or not at all, from its NCCL groups;
 * the groups of the host backend are exact.
 */
public final class Stragglers {
  /** The part of the time from which on waiting for a rank is reported: a tenth. */
  public static final double DEFAULT_THRESHOLD = 0.1;

  private static final int MOST = 512;
  // As the flight recorder writes them. In the others the root waits alone, or nobody does.
  private static final Set<String> ALL_WAIT =
      Set.of(
          "all_reduce",
          "all_gather",
          "_all_gather_base",
          "reduce_scatter",
          "_reduce_scatter_base",
          "all_to_all",
          "barrier");

  private final List<ProcessGroup> groups;
  private final double threshold;
  private final Map<String, Long> seen = new HashMap<>();

  /**
   * What a rank tells of a group.
   *
   * @param sequences the numbers of its collectives, ascending
   * @param nanos how long it was in each
   * @param span nanoseconds from the first call to the end of the last one
   */
  record Window(long[] sequences, long[] nanos, long span) {}

  private Stragglers(List<ProcessGroup> groups, double threshold) {
    this.groups = groups;
    this.threshold = threshold;
  }

  /**
   * Watches groups; those of one rank are left out, and what is given twice counts once.
   *
   * @param groups in an order that is the same on all ranks, such as that of a mesh's dimensions
   * @throws IllegalStateException if the flight recorder is off
   */
  public static Stragglers of(List<ProcessGroup> groups) {
    for (ProcessGroup g : groups) {
      if (!g.context().flightRecorder().isEnabled()) {
        throw new IllegalStateException(
            "slow ranks are found from the flight recorder, which is off; expected"
                + " WEFT_FR_BUFFER_SIZE above 0");
      }
    }
    Map<String, ProcessGroup> byName = new LinkedHashMap<>();
    groups.stream()
        .filter(g -> g.isMember() && g.size() > 1)
        .forEach(g -> byName.putIfAbsent(g.name(), g));
    return new Stragglers(List.copyOf(byName.values()), DEFAULT_THRESHOLD);
  }

  /**
   * The same with another threshold.
   *
   * @param share of the time that others must wait for a rank, above 0 and at most 1
   */
  public Stragglers withThreshold(double share) {
    if (!(share > 0 && share <= 1)) {
      throw new IllegalArgumentException(
          "threshold is " + share + "; expected more than 0 and at most 1");
    }
    return new Stragglers(groups, share);
  }

  /**
   * Looks at the collectives since the last check, at most the newest 512 of each group. A small
   * all-gather in each group; the members of a group get the same answer for it.
   *
   * @return slow ranks of this rank's groups, worst first in each
   */
  public List<Straggler> check() {
    List<Straggler> out = new ArrayList<>();
    for (ProcessGroup g : groups) {
      List<Window> all =
          ObjectCollectives.allGatherObject(window(g), Window.class, g).stream()
              .map(Objects::requireNonNull)
              .toList();
      out.addAll(find(g.name(), g.ranks(), all, threshold));
    }
    return out;
  }

  private Window window(ProcessGroup g) {
    long after = seen.getOrDefault(g.name(), 0L);
    TreeMap<Long, RecordedCall> calls = new TreeMap<>();
    for (RecordedCall c : g.context().flightRecorder().calls()) {
      if (!c.isP2p()
          && c.groupName().equals(g.name())
          && ALL_WAIT.contains(c.name())
          && c.sequenceNumber() > after
          && c.durationNanos() >= 0) {
        calls.put(c.sequenceNumber(), c);
      }
    }
    while (calls.size() > MOST) {
      Object unused = calls.pollFirstEntry();
    }
    if (calls.isEmpty()) {
      return new Window(new long[0], new long[0], 0);
    }
    seen.put(g.name(), calls.lastKey());
    long begin = calls.values().stream().mapToLong(RecordedCall::created).min().orElseThrow();
    long end =
        calls.values().stream().mapToLong(c -> c.created() + c.durationNanos()).max().orElseThrow();
    return new Window(
        calls.keySet().stream().mapToLong(Long::longValue).toArray(),
        calls.values().stream().mapToLong(RecordedCall::durationNanos).toArray(),
        end - begin);
  }

  /** Compares what the members tell; only collectives that all of them have count. */
  static List<Straggler> find(
      String group, List<Integer> ranks, List<Window> windows, double threshold) {
    int n = ranks.size();
    long[] late = new long[n];
    int[] last = new int[n];
    int count = 0;
    for (long sequence : windows.get(0).sequences()) {
      long[] times = times(sequence, windows);
      if (times.length < n) {
        continue;
      }
      count++;
      int shortest = 0;
      for (int r = 0; r < n; r++) {
        late[r] += medianWithout(times, r) - times[r];
        shortest = times[r] < times[shortest] ? r : shortest;
      }
      last[shortest]++;
    }
    long span = windows.stream().mapToLong(Window::span).max().orElse(0);
    List<Straggler> out = new ArrayList<>();
    for (int r = 0; r < n && span > 0; r++) {
      double share = Math.min(1, (double) late[r] / span);
      if (share >= threshold) {
        out.add(new Straggler(ranks.get(r), group, ranks, count, last[r], late[r] * 1e-9, share));
      }
    }
    out.sort((a, b) -> Double.compare(b.share(), a.share()));
    return out;
  }

  private static long[] times(long sequence, List<Window> windows) {
    long[] out = new long[windows.size()];
    int found = 0;
    for (Window w : windows) {
      int i = Arrays.binarySearch(w.sequences(), sequence);
      if (i >= 0) {
        out[found++] = w.nanos()[i];
      }
    }
    return Arrays.copyOf(out, found);
  }

  private static long medianWithout(long[] times, int rank) {
    long[] others = new long[times.length - 1];
    System.arraycopy(times, 0, others, 0, rank);
    System.arraycopy(times, rank + 1, others, rank, others.length - rank);
    Arrays.sort(others);
    int middle = others.length / 2;
    return others.length % 2 == 1 ? others[middle] : (others[middle - 1] + others[middle]) / 2;
  }
}
