package dev.weft.examples.trainer;

import dev.weft.profiler.TraceMerge;
import dev.weft.profiler.TraceSummary;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * A page about a run from what it left in its folder: losses, the mesh and the placements, and,
 * where the profiler was on, memory, a step's timeline and the collectives. Stateless.
 */
public final class RunReport {
  private static final int TOP = 12;
  private static final double SLOWER = 0.8;
  private static final String[] COLOURS = {"main", "second", "third", "fourth"};

  private RunReport() {}

  /**
   * Writes the page.
   *
   * @param run the folder that {@code weft train --out} made
   * @param traces the folder with traces, or null for none
   * @param out where the page goes
   * @return the warnings that it shows
   * @throws IllegalArgumentException if the folder holds no run, or no step has been made
   */
  public static List<String> write(Path run, @Nullable Path traces, Path out) {
    RunRecord record = RunRecord.read(run);
    Path losses = run.resolve("losses.csv");
    List<LossRow> rows = LossLog.read(losses);
    if (rows.isEmpty()) {
      throw new IllegalArgumentException(losses + " has no step; expected at least one");
    }
    Report report =
        new Report(
            record.title(),
            record.subtitle(),
            rows,
            record.settings(),
            record.clip(),
            record.steps());
    TraceSummary summary = traces == null ? null : TraceMerge.merge(List.of(traces), null);
    List<String> warnings = warnings(record, rows, summary);
    Report unused = report.section("Worth a look", list(warnings));
    if (summary != null) {
      unused = report.plot(memory(summary)).html(new StepTimeline(summary).html());
    }
    unused = report.section("Mesh", mesh(record.mesh()));
    if (!record.placements().isEmpty()) {
      unused = report.section("Placements of rank 0's parameters", placements(record.placements()));
    }
    if (summary != null) {
      unused = report.section("Collectives by group", traffic(summary));
      unused = report.section("Ranks", ranks(summary));
      unused = report.section("Where the time goes", topOps(summary));
    }
    report.write(out);
    return warnings;
  }

  private static List<String> warnings(
      RunRecord record, List<LossRow> rows, @Nullable TraceSummary summary) {
    List<String> out = new ArrayList<>();
    if (!record.replicated().isEmpty()) {
      out.add(
          "Replication fallback: "
              + String.join(", ", record.replicated())
              + " have no sharding rule and run on whole tensors.");
    }
    int quarter = rows.size() / 4;
    if (quarter > 0) {
      double early = rate(rows.subList(quarter, 2 * quarter));
      double late = rate(rows.subList(rows.size() - quarter, rows.size()));
      if (late < SLOWER * early) {
        out.add(
            format(
                "The run became slower: %,.0f tokens/s early on, %,.0f at the end.", early, late));
      }
    }
    if (summary != null) {
      out.addAll(summary.warnings());
    }
    return out;
  }

  private static double rate(List<LossRow> rows) {
    double[] rates = rows.stream().mapToDouble(LossRow::tokensPerSecond).sorted().toArray();
    return rates[rates.length / 2];
  }

  private static String list(List<String> warnings) {
    if (warnings.isEmpty()) {
      return "<p class=\"quiet\">Nothing stands out.</p>";
    }
    StringBuilder out = new StringBuilder("<ul class=\"warnings\">");
    warnings.forEach(w -> out.append("<li>").append(Report.escape(w)).append("</li>"));
    return out.append("</ul>").toString();
  }

  private static Plot memory(TraceSummary summary) {
    Map<String, List<double[]>> lines = new TreeMap<>();
    for (TraceSummary.MemoryPoint m : summary.memory()) {
      lines
          .computeIfAbsent("rank " + m.rank() + ", " + m.device(), k -> new ArrayList<>())
          .add(new double[] {m.time() / 1e3, m.bytes() / 1e6});
    }
    Plot plot = new Plot("Memory in the recorded steps, MB over ms", "%,.2f").fromZero().over("ms");
    int i = 0;
    for (Map.Entry<String, List<double[]>> e : lines.entrySet()) {
      double[] x = e.getValue().stream().mapToDouble(p -> p[0]).toArray();
      double[] y = e.getValue().stream().mapToDouble(p -> p[1]).toArray();
      plot.line(e.getKey(), COLOURS[i++ % COLOURS.length], false, x, y);
    }
    return plot;
  }

  /** Ranks in rows of the last dimension, the others above each other. */
  private static String mesh(Map<String, Integer> mesh) {
    List<String> names = new ArrayList<>(mesh.keySet());
    int columns = names.isEmpty() ? 1 : mesh.getOrDefault(names.get(names.size() - 1), 1);
    int ranks = mesh.values().stream().reduce(1, (a, b) -> a * b);
    StringBuilder out = new StringBuilder("<p class=\"quiet\">");
    mesh.forEach((name, size) -> out.append(format("%s = %d &nbsp; ", name, size)));
    out.append(format("</p><div class=\"mesh\" style=\"--columns:%d\">", columns));
    for (int rank = 0; rank < ranks; rank++) {
      StringBuilder where = new StringBuilder();
      int rest = rank;
      for (int d = names.size() - 1; d >= 0; d--) {
        int size = mesh.getOrDefault(names.get(d), 1);
        where.insert(0, names.get(d) + " " + rest % size + (d == names.size() - 1 ? "" : ", "));
        rest /= size;
      }
      out.append(format("<div><b>%d</b><span>%s</span></div>", rank, where));
    }
    return out.append("</div>").toString();
  }

  private static String placements(List<RunRecord.Placed> kinds) {
    StringBuilder out = new StringBuilder("<div class=\"placements\">");
    for (RunRecord.Placed p : kinds) {
      String more = p.names().size() > 1 ? format(" and %d more", p.names().size() - 1) : "";
      out.append(
          format(
              "<div><div class=\"drawing\">%s</div><p><b>%s</b>%s<br>%s, %s</p></div>",
              p.svg(),
              Report.escape(p.names().get(0)),
              more,
              Report.escape(p.shape()),
              Report.escape(p.placements())));
    }
    return out.append("</div>").toString();
  }

  private static String traffic(TraceSummary summary) {
    StringBuilder rows = new StringBuilder();
    for (TraceSummary.GroupTraffic g : summary.traffic()) {
      rows.append(
          format(
              "<tr><td>%s</td><td>%d</td><td>%s</td><td>%,d</td><td>%,.3f</td><td>%,.3f</td>"
                  + "<td>%,.3f</td></tr>",
              Report.escape(g.group()),
              g.size(),
              g.operation(),
              g.count(),
              g.bytes() / 1e6,
              g.meanMs(),
              g.busBandwidth()));
    }
    return table("group|ranks|collective|count|MB|mean ms|bus GB/s", rows);
  }

  private static String ranks(TraceSummary summary) {
    StringBuilder rows = new StringBuilder();
    for (TraceSummary.RankTime t : summary.rankTimes()) {
      rows.append(
          format(
              "<tr><td>%d</td><td>%,.1f</td><td>%,.1f</td><td>%,.1f</td><td>%.0f %%</td>"
                  + "<td>%,.1f</td><td>%,.1f</td></tr>",
              t.rank(),
              t.recordedMs(),
              t.communicationMs(),
              t.exposedMs(),
              100 * t.overlap(),
              t.waitingMs(),
              t.lateMs()));
    }
    return table(
        "rank|recorded ms|communicates ms|exposed ms|overlap|waits for later ranks ms|others wait"
            + " for it ms",
        rows);
  }

  private static String topOps(TraceSummary summary) {
    StringBuilder rows = new StringBuilder();
    for (TraceSummary.TopOp op : summary.topOps(TOP)) {
      rows.append(
          format(
              "<tr><td>%s</td><td>%,d</td><td>%,.1f</td><td>%.1f %%</td></tr>",
              Report.escape(op.name()), op.calls(), op.milliseconds(), 100 * op.share()));
    }
    return table("operator (own time, all ranks)|calls|ms|share", rows);
  }

  private static String table(String heads, CharSequence rows) {
    StringBuilder out = new StringBuilder("<div class=\"wide\"><table><thead><tr>");
    for (String head : heads.split("\\|", -1)) {
      out.append("<th>").append(head).append("</th>");
    }
    return out.append("</tr></thead><tbody>")
        .append(rows)
        .append("</tbody></table></div>")
        .toString();
  }

  private static String format(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
