package dev.weft.profiler;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** What one rank's trace tells; times in microseconds on the joined clock. One thread. */
final class RankTrace {
  /** A slice of a lane. */
  record Slice(int lane, String name, String category, double start, double end) {}

  /** Calls of one name, and the time in them but for what they call. */
  record SelfTime(long calls, double micros) {}

  /**
   * A collective as this rank saw it.
   *
   * @param arrived when the rank could begin: the host's call, or where a device works it off, when
   *     its stream came there
   */
  record Collective(
      String operation,
      String group,
      String description,
      int[] ranks,
      long sequence,
      long bytes,
      double busBandwidth,
      boolean async,
      double arrived,
      double start,
      double end) {
    String key() {
      return group + "|" + operation + "|" + sequence;
    }
  }

  /** Live bytes of a device. */
  record Memory(String device, double time, double bytes) {}

  private final int rank;
  private final double uncertaintyMicros;
  private double windowMicros;
  private final List<Slice> slices = new ArrayList<>();
  private final List<Collective> collectives = new ArrayList<>();
  private final List<Memory> memory = new ArrayList<>();
  private final Map<String, SelfTime> selfTimes = new TreeMap<>();
  private double exposed;
  private double communication;

  RankTrace(TraceFile file) {
    this.rank = file.rank();
    this.uncertaintyMicros = file.uncertaintyNanos() / 1e3;
    for (JsonNode w : file.head().path("windows")) {
      windowMicros += w.path("end_us").asDouble() - w.path("start_us").asDouble();
    }
  }

  void add(JsonNode event, double shift) {
    String kind = event.path("ph").asText();
    if (kind.equals("C")) {
      String device = event.path("name").asText().replaceFirst("^memory ", "");
      memory.add(
          new Memory(
              device, event.path("ts").asDouble(), event.path("args").path("bytes").asDouble()));
    }
    if (!kind.equals("X")) {
      return;
    }
    String category = event.path("cat").asText();
    double start = event.path("ts").asDouble();
    double end = start + event.path("dur").asDouble();
    JsonNode args = event.path("args");
    if (category.equals("comm_launch") && !args.path("async").asBoolean()) {
      category = "comm_sync";
    }
    slices.add(
        new Slice(event.path("tid").asInt(), event.path("name").asText(), category, start, end));
    if (category.equals("comm")) {
      int[] ranks = new int[args.path("ranks").size()];
      for (int i = 0; i < ranks.length; i++) {
        ranks[i] = args.path("ranks").get(i).asInt();
      }
      collectives.add(
          new Collective(
              event.path("name").asText(),
              args.path("group").asText(),
              args.path("description").asText(),
              ranks,
              args.path("seq").asLong(),
              args.path("bytes").asLong(),
              args.path("bus_bandwidth_gb_per_s").asDouble(),
              args.path("async").asBoolean(),
              args.path(args.has("reached_us") ? "reached_us" : "launched_us").asDouble() + shift,
              start,
              end));
    }
  }

  /** Works out the times once all events are there. */
  void finish() {
    selfTimes();
    Intervals all = Intervals.union(of("comm"));
    communication = all.length();
    List<double[]> kernels = of("kernel");
    if (kernels.isEmpty()) {
      List<double[]> blocked = of("comm_wait");
      blocked.addAll(of("comm_sync"));
      exposed = Intervals.union(blocked).and(all).length();
    } else {
      exposed = communication - all.and(Intervals.union(kernels)).length();
    }
  }

  private List<double[]> of(String category) {
    List<double[]> out = new ArrayList<>();
    for (Slice s : slices) {
      if (s.category.equals(category)) {
        out.add(new double[] {s.start, s.end});
      }
    }
    return out;
  }

  private void selfTimes() {
    List<Slice> sorted =
        slices.stream()
            .filter(s -> !s.category.equals("step") && !s.category.equals("comm"))
            .sorted(
                Comparator.comparingInt(Slice::lane)
                    .thenComparingDouble(Slice::start)
                    .thenComparing(Comparator.comparingDouble(Slice::end).reversed()))
            .toList();
    Deque<Slice> open = new ArrayDeque<>();
    for (Slice s : sorted) {
      while (!open.isEmpty() && (open.peek().lane != s.lane || open.peek().end <= s.start)) {
        Slice unused = open.pop();
      }
      if (!open.isEmpty()) {
        count(open.peek(), 0, -(s.end - s.start));
      }
      count(s, 1, s.end - s.start);
      open.push(s);
    }
  }

  private void count(Slice s, long calls, double micros) {
    // A kernel's time on the device beside the host's time of its launch.
    String name = s.category.equals("kernel") ? s.name + " (device)" : s.name;
    selfTimes.merge(
        name,
        new SelfTime(calls, micros),
        (a, b) -> new SelfTime(a.calls + b.calls, a.micros + b.micros));
  }

  int rank() {
    return rank;
  }

  double uncertaintyMicros() {
    return uncertaintyMicros;
  }

  /** How long was recorded. */
  double windowMicros() {
    return windowMicros;
  }

  List<Slice> slices() {
    return slices;
  }

  List<Collective> collectives() {
    return collectives;
  }

  List<Memory> memory() {
    return memory;
  }

  Map<String, SelfTime> selfTimeByName() {
    return selfTimes;
  }

  /** Time in which some collective was under way. */
  double communicationMicros() {
    return communication;
  }

  /** The part of it in which nothing was computed: the host waited, or the device was idle. */
  double exposedMicros() {
    return exposed;
  }
}
