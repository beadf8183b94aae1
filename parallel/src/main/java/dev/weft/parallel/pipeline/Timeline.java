package dev.weft.parallel.pipeline;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A schedule played through with a forward of one unit of time and a backward of two, and no time
 * for messages. Immutable.
 */
public final class Timeline {
  private static final int FORWARD = 1;
  private static final int BACKWARD = 2;

  private record Span(Action action, int start, int end) {}

  private final List<List<Span>> ranks;
  private final int length;

  private Timeline(List<List<Span>> ranks, int length) {
    this.ranks = ranks;
    this.length = length;
  }

  /**
   * Plays a schedule.
   *
   * @throws IllegalArgumentException if ranks would wait for each other for ever
   */
  static Timeline of(Schedule schedule, List<List<Action>> actions, int stages) {
    Map<Action, Integer> done = new HashMap<>();
    int[] next = new int[actions.size()];
    int[] free = new int[actions.size()];
    List<List<Span>> spans = new ArrayList<>();
    actions.forEach(a -> spans.add(new ArrayList<>()));
    boolean moved = true;
    while (moved) {
      moved = false;
      for (int r = 0; r < next.length; r++) {
        while (next[r] < actions.get(r).size()) {
          Action a = actions.get(r).get(next[r]);
          Integer ready = ready(a, stages, done);
          if (ready == null) {
            break;
          }
          int start = Math.max(free[r], ready);
          int end = start + (a.isForward() ? FORWARD : BACKWARD);
          spans.get(r).add(new Span(a, start, end));
          done.put(a, end);
          free[r] = end;
          next[r]++;
          moved = true;
        }
      }
    }
    int length = 0;
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
      length = Math.max(length, free[r]);
    }
    return new Timeline(List.copyOf(spans), length);
  }

  private static @Nullable Integer ready(Action a, int stages, Map<Action, Integer> done) {
    if (a.isForward()) {
      return a.stage() == 0
          ? Integer.valueOf(0)
          : done.get(Action.forward(a.stage() - 1, a.microbatch()));
    }
    Integer own = done.get(Action.forward(a.stage(), a.microbatch()));
    Integer behind =
        a.stage() == stages - 1
            ? Integer.valueOf(0)
            : done.get(Action.backward(a.stage() + 1, a.microbatch()));
    return own == null || behind == null ? null : Integer.valueOf(Math.max(own, behind));
  }

  /** The part of the time, over all ranks, in which a rank has nothing to do. */
  public double bubble() {
    long busy = 0;
    for (List<Span> spans : ranks) {
      for (Span s : spans) {
        busy += s.end - s.start;
      }
    }
    return 1 - (double) busy / ((double) length * ranks.size());
  }

  /** The most microbatches, over all its stages, whose activations a rank holds at a time. */
  public int activations(int rank) {
    int held = 0;
    int most = 0;
    for (Span s : ranks.get(rank)) {
      held += s.action.isForward() ? 1 : -1;
      most = Math.max(most, held);
    }
    return most;
  }

  /** A line for each rank: microbatches in forward (F) and backward (B), one column a unit. */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder();
    for (int r = 0; r < ranks.size(); r++) {
      StringBuilder line = new StringBuilder(String.format(Locale.ROOT, "rank %-3d", r));
      int at = 0;
      for (Span s : ranks.get(r)) {
        line.append(" .  ".repeat(s.start - at));
        String cell = (s.action.isForward() ? "F" : "B") + s.action.microbatch();
        line.append(String.format(Locale.ROOT, "%-" + 4 * (s.end - s.start) + "s", " " + cell));
        at = s.end;
      }
      line.append(" .  ".repeat(length - at));
      text.append(line.toString().stripTrailing()).append('\n');
    }
    return text.toString();
  }
}
