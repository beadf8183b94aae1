package dev.weft.profiler;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** What in a summary is worth a look, in plain words. Stateless. */
final class TraceWarnings {
  // Below this size a collective's time is its latency.
  private static final long TINY_BYTES = 4_096;
  private static final long MANY = 20;
  private static final double EXPOSED = 0.10;

  private TraceWarnings() {}

  static List<String> of(TraceSummary summary) {
    List<String> out = new ArrayList<>();
    if (summary.rankNumbers().size() < summary.worldSize()) {
      out.add(
          format(
              "Only ranks %s of %d have a trace; waiting is not known for groups with others.",
              summary.rankNumbers(), summary.worldSize()));
    }
    for (TraceSummary.RankTime t : summary.rankTimes()) {
      if (t.straggles()) {
        out.add(
            format(
                "Rank %d is a straggler: the others waited %.1f ms for it alone, %.0f %% of the"
                    + " recorded time.",
                t.rank(), t.lateMs(), 100 * t.lateMs() / t.recordedMs()));
      }
    }
    exposed(summary, out);
    for (TraceSummary.GroupTraffic g : summary.traffic()) {
      long mean = g.bytes() / g.count();
      long perRank = g.count() / Math.max(1, summary.rankNumbers().size());
      if (mean < TINY_BYTES && mean > 0 && perRank >= MANY) {
        out.add(
            format(
                "Tiny collectives: each rank issues %d of %s in group %s, of %,d B on average; one"
                    + " for several tensors would cost less.",
                perRank, g.operation(), g.group(), mean));
      }
    }
    return out;
  }

  private static void exposed(TraceSummary summary, List<String> out) {
    double exposed = 0;
    double recorded = 0;
    for (TraceSummary.RankTime t : summary.rankTimes()) {
      exposed += t.exposedMs();
      recorded += t.recordedMs();
    }
    if (exposed > EXPOSED * recorded) {
      out.add(
          format(
              "Exposed communication: ranks compute nothing in %.0f %% of the time, while they wait"
                  + " for collectives.",
              100 * exposed / recorded));
    }
  }

  private static String format(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
