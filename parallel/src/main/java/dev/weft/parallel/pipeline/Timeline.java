package dev.weft.parallel.pipeline;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * When the ranks of a pipeline do what: a schedule played through with a forward of one unit of
 * time and a backward of two (one for each of its passes) and no time for messages, or what was
 * measured. Immutable.
 */
public final class Timeline {
  /** In units of time from the start. */
  record Span(Action action, double start, double end) {}

  private final List<List<Span>> ranks;
  private final double length;

  private Timeline(List<List<Span>> ranks) {
    this.ranks = ranks;
    this.length = ranks.stream().flatMap(List::stream).mapToDouble(Span::end).max().orElse(0);
  }

  /**
   * Plays a schedule.
   *
   * @throws IllegalArgumentException if ranks would wait for each other for ever
   */
  static Timeline of(Schedule schedule, List<List<Action>> actions, int stages) {
    Map<Action, Double> done = new HashMap<>();
    int[] next = new int[actions.size()];
    double[] free = new double[actions.size()];
    List<List<Span>> spans = new ArrayList<>();
    actions.forEach(a -> spans.add(new ArrayList<>()));
    boolean moved = true;
    while (moved) {
      moved = false;
      for (int r = 0; r < next.length; r++) {
        while (next[r] < actions.get(r).size()) {
          Action a = actions.get(r).get(next[r]);
          Double ready = ready(a, stages, done);
          if (ready == null) {
            break;
          }
          double start = Math.max(free[r], ready);
          double end = start + a.kind().cost();
          spans.get(r).add(new Span(a, start, end));
          done.put(a, end);
          free[r] = end;
          next[r]++;
          moved = true;
        }
      }
    }
    for (int r = 0; r < next.length; r++) {
      if (next[r] < actions.get(r).size()) {
        throw new IllegalArgumentException(
            "schedule "
                + schedule
                + " cannot run: rank "
                + r
                + " would wait for ever before "
                + actions.get(r).get(next[r]));
      }
    }
    return new Timeline(List.copyOf(spans));
  }

  private static @Nullable Double ready(Action a, int stages, Map<Action, Double> done) {
    int s = a.stage();
    int m = a.microbatch();
    if (a.isForward()) {
      return s == 0 ? Double.valueOf(0) : done.get(Action.forward(s - 1, m));
    }
    if (a.kind() == Action.Kind.WEIGHT) {
      return done.get(Action.input(s, m));
    }
    Double own = done.get(Action.forward(s, m));
    Double behind = s == stages - 1 ? Double.valueOf(0) : done.get(Action.backward(s + 1, m));
    if (behind == null) {
      behind = done.get(Action.input(s + 1, m));
    }
    return own == null || behind == null ? null : Double.valueOf(Math.max(own, behind));
  }

  /**
   * What ranks have measured, from the start of the first action on.
   *
   * @param traces one for each rank, of one step, with clocks that agree (threads of one process)
   * @param unit the length of a unit of time
   */
  public static Timeline measured(List<Trace> traces, Duration unit) {
    long first = Long.MAX_VALUE;
    for (Trace t : traces) {
      for (Trace.Entry e : t.entries()) {
        first = Math.min(first, e.startNanos());
      }
    }
    double nanos = unit.toNanos();
    List<List<Span>> ranks = new ArrayList<>();
    for (Trace t : traces) {
      List<Span> spans = new ArrayList<>();
      for (Trace.Entry e : t.entries()) {
        spans.add(
            new Span(e.action(), (e.startNanos() - first) / nanos, (e.endNanos() - first) / nanos));
      }
      ranks.add(List.copyOf(spans));
    }
    return new Timeline(List.copyOf(ranks));
  }

  /** The part of the time, over all ranks, in which a rank has nothing to do. */
  public double bubble() {
    double busy = 0;
    for (List<Span> spans : ranks) {
      for (Span s : spans) {
        busy += s.end - s.start;
      }
    }
    return 1 - busy / (length * ranks.size());
  }

  /** How long it takes, in units of time. */
  public double length() {
    return length;
  }

  /** The most microbatches, over all its stages, whose activations a rank holds at a time. */
  public int activations(int rank) {
    int held = 0;
    int most = 0;
    for (Span s : ranks.get(rank)) {
      if (s.action.isForward()) {
        held++;
      } else if (s.action.isLast()) {
        held--;
      }
      most = Math.max(most, held);
    }
    return most;
  }

  /**
   * A line for each rank, one column a unit: microbatches in forward (F), in backward (B), and in
   * its two passes for inputs (I) and weights (W).
   */
  @Override
  public String toString() {
    int columns = (int) Math.round(length);
    StringBuilder text = new StringBuilder();
    for (int r = 0; r < ranks.size(); r++) {
      StringBuilder line = new StringBuilder(String.format(Locale.ROOT, "rank %-3d", r));
      int at = 0;
      for (Span s : ranks.get(r)) {
        int start = Math.max(at, (int) Math.round(s.start));
        int width = (int) Math.round(s.end) - start;
        if (width <= 0) {
          continue; // shorter than can be drawn
        }
        line.append(" .  ".repeat(start - at));
        line.append(String.format(Locale.ROOT, "%-" + 4 * width + "s", " " + s.action.label()));
        at = start + width;
      }
      line.append(" .  ".repeat(Math.max(0, columns - at)));
      text.append(line.toString().stripTrailing()).append('\n');
    }
    return text.toString();
  }
}
