package dev.weft.examples.trainer;

import dev.weft.profiler.TraceSummary;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** One step of all ranks as a drawing: what each computes, where it waits, what is under way. */
final class StepTimeline {
  private static final double FINEST = 0.0004;
  private static final Set<String> WAITS = Set.of("comm_wait", "comm_sync");

  private final TraceSummary traces;

  StepTimeline(TraceSummary traces) {
    this.traces = traces;
  }

  private record Block(double start, double end, String css, String title) {}

  /** The drawing; empty where the traces have no steps. */
  String html() {
    TraceSummary.Piece step = typicalStep();
    if (step == null) {
      return "";
    }
    double start = Double.POSITIVE_INFINITY;
    double end = 0;
    for (TraceSummary.Piece p : traces.pieces()) {
      if (p.kind().equals("step") && p.name().equals(step.name())) {
        start = Math.min(start, p.start());
        end = Math.max(end, p.end());
      }
    }
    StringBuilder rows = new StringBuilder();
    for (int rank : traces.rankNumbers()) {
      row(rows, "rank " + rank, blocks(rank, start, end, true), start, end);
      row(rows, "", blocks(rank, start, end, false), start, end);
    }
    return format(
        "<section><h2>Timeline of %s: %.1f ms</h2><p class=\"legend\">"
            + "<span class=\"key op\">computes</span><span class=\"key wait\">waits</span>"
            + "<span class=\"key comm\">collective under way</span></p>"
            + "<div class=\"timeline\">%s</div></section>%n",
        step.name(), (end - start) / 1e3, rows);
  }

  /** The step of rank 0 (or the first there is) of median length. */
  private TraceSummary.@Nullable Piece typicalStep() {
    int first = traces.rankNumbers().get(0);
    List<TraceSummary.Piece> steps =
        traces.pieces().stream()
            .filter(p -> p.kind().equals("step") && p.rank() == first)
            .sorted(Comparator.comparingDouble(p -> p.end() - p.start()))
            .toList();
    return steps.isEmpty() ? null : steps.get(steps.size() / 2);
  }

  /** The outermost calls of threads with the waits on top, or what goes on beside them. */
  private List<Block> blocks(int rank, double from, double to, boolean host) {
    List<Block> out = new ArrayList<>();
    List<Block> waits = new ArrayList<>();
    Map<Integer, Double> covered = new LinkedHashMap<>();
    List<TraceSummary.Piece> pieces =
        traces.pieces().stream()
            .filter(p -> p.rank() == rank && p.end() > from && p.start() < to)
            .sorted(Comparator.comparingDouble(TraceSummary.Piece::start))
            .toList();
    for (TraceSummary.Piece p : pieces) {
      boolean outer = p.end() > covered.getOrDefault(p.lane(), 0.0);
      if (host && WAITS.contains(p.kind())) {
        waits.add(block(p, "wait", from, to));
      } else if (host && outer && (p.kind().equals("op") || p.kind().equals("comm_launch"))) {
        covered.put(p.lane(), p.end());
        out.add(block(p, "op", from, to));
      } else if (!host && p.kind().equals("comm")) {
        out.add(block(p, "comm", from, to));
      } else if (!host && p.kind().equals("kernel")) {
        out.add(block(p, "op", from, to));
      }
    }
    List<Block> all = joined(out, (to - from) * FINEST);
    all.addAll(joined(waits, (to - from) * FINEST));
    return all;
  }

  private static Block block(TraceSummary.Piece p, String css, double from, double to) {
    String title = format("%s, %.3f ms", p.name(), (p.end() - p.start()) / 1e3);
    return new Block(Math.max(p.start(), from), Math.min(p.end(), to), css, title);
  }

  /** Neighbours that nobody could tell apart become one. */
  private static List<Block> joined(List<Block> blocks, double finest) {
    List<Block> out = new ArrayList<>();
    for (Block b : blocks) {
      Block last = out.isEmpty() ? null : out.get(out.size() - 1);
      if (last != null && alike(last, b, finest)) {
        out.set(
            out.size() - 1,
            new Block(last.start, Math.max(last.end, b.end), b.css, "several calls"));
      } else {
        out.add(b);
      }
    }
    return out;
  }

  private static boolean alike(Block a, Block b, double finest) {
    return a.css.equals(b.css)
        && b.start - a.end < finest
        && (b.end - b.start < finest || a.end - a.start < finest);
  }

  private static void row(
      StringBuilder out, String name, List<Block> blocks, double from, double to) {
    out.append(format("<span class=\"who\">%s</span><div class=\"lane\">", name));
    for (Block b : blocks) {
      out.append(
          format(
              "<i class=\"%s\" style=\"left:%.3f%%;width:%.3f%%\" title=\"%s\"></i>",
              b.css,
              100 * (b.start - from) / (to - from),
              100 * (b.end - b.start) / (to - from),
              b.title));
    }
    out.append("</div>");
  }

  private static String format(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
