package dev.weft.profiler;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** What the traces of a run's ranks tell together. Read-only once made; for one thread. */
public final class TraceSummary {
  private static final int TOP = 10;
  // A rank that costs the others less of their time is not named.
  private static final double STRAGGLING = 0.05;
  // Of two ranks that are alike each is the last in half of the collectives.
  private static final double MOSTLY = 2.0 / 3;

  private final int worldSize;
  private final List<RankTrace> ranks = new ArrayList<>();

  TraceSummary(int worldSize) {
    this.worldSize = worldSize;
  }

  RankTrace rank(TraceFile file) {
    RankTrace rank = new RankTrace(file);
    ranks.add(rank);
    return rank;
  }

  /**
   * An operator over all ranks.
   *
   * @param calls how many
   * @param milliseconds in it, but for what it called
   * @param share of all ranks' recorded time, 0 to 1
   */
  public record TopOp(String name, long calls, double milliseconds, double share) {}

  /**
   * One rank's time.
   *
   * @param recordedMs how long was recorded
   * @param communicationMs in which some collective was under way
   * @param exposedMs the part of it in which nothing was computed
   * @param waitingMs for ranks that came later to the same collectives
   * @param lateMs that the others waited for this rank alone, the last of all
   * @param lastShare of its collectives in which it was the last by more than the clocks'
   *     uncertainty, 0 to 1
   */
  public record RankTime(
      int rank,
      double recordedMs,
      double communicationMs,
      double exposedMs,
      double waitingMs,
      double lateMs,
      double lastShare) {
    /** The part of communication that is hidden behind computation, 0 to 1; 1 without any. */
    public double overlap() {
      return communicationMs == 0 ? 1 : 1 - exposedMs / communicationMs;
    }

    /** Whether it is the last as a rule, and the others lose a good part of their time to it. */
    public boolean straggles() {
      return lateMs > STRAGGLING * recordedMs && lastShare > MOSTLY;
    }
  }

  /**
   * Collectives of one kind in one group, or in groups of the same purpose and size.
   *
   * @param group its description, or its name
   * @param count of all ranks
   * @param bytes of all ranks
   * @param meanMs from launch to end
   * @param busBandwidth the median, in GB/s
   */
  public record GroupTraffic(
      String group,
      int size,
      String operation,
      long count,
      long bytes,
      double meanMs,
      double busBandwidth) {}

  /**
   * A piece of a lane, for drawing; microseconds since the first event of all ranks.
   *
   * @param kind {@code op}, {@code comm}, {@code comm_wait}, {@code comm_sync}, {@code step},
   *     {@code kernel} or another category of the trace
   */
  public record Piece(int rank, int lane, String name, String kind, double start, double end) {}

  /** Live bytes of a rank's device; microseconds since the first event of all ranks. */
  public record MemoryPoint(int rank, String device, double time, double bytes) {}

  /** The ranks that the traces are of. */
  public List<Integer> rankNumbers() {
    return ranks.stream().map(RankTrace::rank).toList();
  }

  /** The ranks that there were. */
  public int worldSize() {
    return worldSize;
  }

  /** By how much times of different ranks may be wrong against each other, in milliseconds. */
  public double clockUncertaintyMs() {
    return ranks.stream().mapToDouble(RankTrace::uncertaintyMicros).max().orElse(0) / 1e3;
  }

  /** The operators that took longest by themselves, the longest first. */
  public List<TopOp> topOps(int most) {
    Map<String, RankTrace.SelfTime> sums = new TreeMap<>();
    double recorded = 0;
    for (RankTrace r : ranks) {
      recorded += r.windowMicros();
      r.selfTimeByName()
          .forEach(
              (name, t) ->
                  sums.merge(
                      name,
                      t,
                      (a, b) ->
                          new RankTrace.SelfTime(a.calls() + b.calls(), a.micros() + b.micros())));
    }
    double whole = recorded;
    return sums.entrySet().stream()
        .map(
            e ->
                new TopOp(
                    e.getKey(),
                    e.getValue().calls(),
                    e.getValue().micros() / 1e3,
                    e.getValue().micros() / whole))
        .sorted(Comparator.comparingDouble(TopOp::milliseconds).reversed())
        .limit(most)
        .toList();
  }

  /** Each rank's time. */
  public List<RankTime> rankTimes() {
    // By rank: collectives, those it was the last of; and times, of which those of several
    // collectives at once count once.
    Map<Integer, long[]> counts = new HashMap<>();
    Map<Integer, List<double[]>> waiting = new HashMap<>();
    Map<Integer, List<double[]>> late = new HashMap<>();
    double unsure = 2e3 * clockUncertaintyMs();
    arrivals()
        .values()
        .forEach(
            all -> {
              double last = all.get(all.size() - 1)[1];
              double beforeLast = all.get(all.size() - 2)[1];
              for (double[] a : all) {
                int rank = (int) a[0];
                counts.computeIfAbsent(rank, r -> new long[2])[0]++;
                waiting
                    .computeIfAbsent(rank, r -> new ArrayList<>())
                    .add(new double[] {a[1], last});
              }
              int lateRank = (int) all.get(all.size() - 1)[0];
              late.computeIfAbsent(lateRank, r -> new ArrayList<>())
                  .add(new double[] {beforeLast, last});
              if (last - beforeLast > unsure) {
                counts.computeIfAbsent(lateRank, r -> new long[2])[1]++;
              }
            });
    return ranks.stream()
        .map(
            r -> {
              long[] n = counts.getOrDefault(r.rank(), new long[2]);
              return new RankTime(
                  r.rank(),
                  r.windowMicros() / 1e3,
                  r.communicationMicros() / 1e3,
                  r.exposedMicros() / 1e3,
                  Intervals.union(waiting.getOrDefault(r.rank(), List.of())).length() / 1e3,
                  Intervals.union(late.getOrDefault(r.rank(), List.of())).length() / 1e3,
                  n[0] == 0 ? 0 : (double) n[1] / n[0]);
            })
        .toList();
  }

  /** Pairs of rank and arrival, in their order, of collectives that all members' traces have. */
  private Map<String, List<double[]>> arrivals() {
    Map<String, List<double[]>> out = new TreeMap<>();
    Map<String, Integer> sizes = new HashMap<>();
    for (RankTrace r : ranks) {
      for (RankTrace.Collective c : r.collectives()) {
        if (!isMessage(c.operation())) {
          sizes.put(c.key(), c.ranks().length);
          out.computeIfAbsent(c.key(), k -> new ArrayList<>())
              .add(new double[] {r.rank(), c.arrived()});
        }
      }
    }
    out.entrySet()
        .removeIf(e -> e.getValue().size() < Math.max(2, sizes.getOrDefault(e.getKey(), 0)));
    out.values().forEach(all -> all.sort(Comparator.comparingDouble(a -> a[1])));
    return out;
  }

  private static boolean isMessage(String operation) {
    return operation.equals("send") || operation.equals("recv");
  }

  /** The collectives by group and operation, those with most bytes first. */
  public List<GroupTraffic> traffic() {
    Map<String, List<RankTrace.Collective>> groups = new TreeMap<>();
    for (RankTrace r : ranks) {
      for (RankTrace.Collective c : r.collectives()) {
        String key = name(c) + "|" + c.ranks().length + "|" + c.operation();
        groups.computeIfAbsent(key, k -> new ArrayList<>()).add(c);
      }
    }
    return groups.values().stream()
        .map(
            all -> {
              RankTrace.Collective first = all.get(0);
              double[] rates =
                  all.stream().mapToDouble(RankTrace.Collective::busBandwidth).sorted().toArray();
              return new GroupTraffic(
                  name(first),
                  first.ranks().length,
                  first.operation(),
                  all.size(),
                  all.stream().mapToLong(RankTrace.Collective::bytes).sum(),
                  all.stream().mapToDouble(c -> c.end() - c.start()).average().orElse(0) / 1e3,
                  rates[rates.length / 2]);
            })
        .sorted(Comparator.comparingLong(GroupTraffic::bytes).reversed())
        .toList();
  }

  private static String name(RankTrace.Collective c) {
    return c.description().isEmpty() ? c.group() : c.description();
  }

  /** All pieces of all lanes. */
  public List<Piece> pieces() {
    List<Piece> out = new ArrayList<>();
    for (RankTrace r : ranks) {
      r.slices()
          .forEach(
              s ->
                  out.add(
                      new Piece(r.rank(), s.lane(), s.name(), s.category(), s.start(), s.end())));
    }
    return out;
  }

  /** Memory of all ranks. */
  public List<MemoryPoint> memory() {
    List<MemoryPoint> out = new ArrayList<>();
    for (RankTrace r : ranks) {
      r.memory().forEach(m -> out.add(new MemoryPoint(r.rank(), m.device(), m.time(), m.bytes())));
    }
    return out;
  }

  /** Plain words about what is worth a look; empty where nothing is. */
  public List<String> warnings() {
    return TraceWarnings.of(this);
  }

  /** The summary as text. */
  @Override
  public String toString() {
    StringBuilder out = new StringBuilder();
    out.append(
        format(
            "traces of %d of %d ranks, clocks within %.3f ms%n%n",
            ranks.size(), worldSize, clockUncertaintyMs()));
    out.append(
        format(
            "%-44s %8s %11s %7s%n", "top operators (own time, all ranks)", "calls", "ms", "share"));
    for (TopOp op : topOps(TOP)) {
      out.append(
          format(
              "  %-42s %8d %11.2f %6.1f%%%n",
              op.name(), op.calls(), op.milliseconds(), 100 * op.share()));
    }
    out.append(
        format(
            "%n%-6s %11s %15s %11s %9s %18s %14s%n",
            "rank",
            "recorded ms",
            "communicates ms",
            "exposed ms",
            "overlap",
            "waits for later ms",
            "others wait ms"));
    for (RankTime t : rankTimes()) {
      out.append(
          format(
              "%-6d %11.2f %15.2f %11.2f %8.1f%% %18.2f %14.2f%s%n",
              t.rank(),
              t.recordedMs(),
              t.communicationMs(),
              t.exposedMs(),
              100 * t.overlap(),
              t.waitingMs(),
              t.lateMs(),
              t.straggles() ? "  straggler" : ""));
    }
    out.append(
        format(
            "%n%-34s %-24s %7s %12s %9s %10s%n",
            "group", "collective", "count", "MB", "mean ms", "bus GB/s"));
    for (GroupTraffic g : traffic()) {
      out.append(
          format(
              "%-34s %-24s %7d %12.3f %9.3f %10.3f%n",
              g.group() + " of " + g.size(),
              g.operation(),
              g.count(),
              g.bytes() / 1e6,
              g.meanMs(),
              g.busBandwidth()));
    }
    List<String> warnings = warnings();
    if (!warnings.isEmpty()) {
      out.append(System.lineSeparator());
      warnings.forEach(w -> out.append(format("- %s%n", w)));
    }
    return out.toString();
  }

  private static String format(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
