package dev.weft.c10d.elastic;

import dev.weft.c10d.metrics.StatusFile.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.LongSummaryStatistics;
import org.jspecify.annotations.Nullable;

/** The lines that show where the ranks of a machine are. Pure functions. */
final class StatusBlock {
  /**
   * How many ranks have a line of their own; a block that is higher than the screen cannot move.
   */
  static final int MOST = 16;

  /** How a rank ended that its launcher has ended. */
  static final String STOPPED = "stopped";

  private static final Duration STALE = Duration.ofSeconds(30);

  private StatusBlock() {}

  /**
   * A rank.
   *
   * @param rank its number in the world
   * @param ending how its process ended, or null while it runs
   * @param status what it told last, or null
   */
  record Row(int rank, @Nullable String ending, @Nullable Status status) {}

  /**
   * The block.
   *
   * @param title what runs
   * @param rows this machine's ranks
   * @param running how long they have been
   * @param nowMillis the time, since 1970
   */
  static List<String> render(String title, List<Row> rows, Duration running, long nowMillis) {
    List<String> out = new ArrayList<>();
    out.add(
        String.format(
            Locale.ROOT,
            "%s  %d:%02d:%02d",
            title,
            running.toHours(),
            running.toMinutesPart(),
            running.toSecondsPart()));
    out.add(line("rank", "state", "step", "loss", "tokens/s", "memory"));
    List<Row> shown = rows.size() > MOST ? rows.subList(0, MOST - 1) : rows;
    shown.forEach(row -> out.add(line(row, nowMillis)));
    if (shown.size() < rows.size()) {
      out.add(rest(rows.subList(shown.size(), rows.size())));
    }
    return out;
  }

  private static String line(Row row, long nowMillis) {
    Status s = row.status();
    return line(
        Integer.toString(row.rank()),
        state(row, nowMillis),
        s == null ? "-" : Long.toString(s.step()),
        s == null || Double.isNaN(s.loss()) ? "-" : String.format(Locale.ROOT, "%.4f", s.loss()),
        s == null ? "-" : String.format(Locale.ROOT, "%,.0f", s.tokensPerSecond()),
        s == null ? "-" : memory(s));
  }

  private static String line(
      String rank, String state, String step, String loss, String speed, String memory) {
    return String.format(
            Locale.ROOT, "%5s  %-22s %9s %11s %12s  %s", rank, state, step, loss, speed, memory)
        .stripTrailing();
  }

  private static String state(Row row, long nowMillis) {
    String ending = row.ending();
    Status s = row.status();
    if (ending != null) {
      return ending.equals("exit code 0") ? "done" : ending;
    }
    if (s == null) {
      return "running"; // it may be a program that reports nothing
    }
    long silent = nowMillis - s.millis();
    return silent < STALE.toMillis() ? "training" : "no news for " + silent / 1_000 + " s";
  }

  private static String memory(Status s) {
    return s.gpuBytes() > 0
        ? bytes(s.gpuBytes()) + " GPU, " + bytes(s.hostBytes()) + " host"
        : bytes(s.hostBytes());
  }

  private static String bytes(long bytes) {
    return bytes >= 10L << 30
        ? String.format(Locale.ROOT, "%.1f GiB", bytes / (double) (1L << 30))
        : String.format(Locale.ROOT, "%.1f MiB", bytes / (double) (1L << 20));
  }

  private static String rest(List<Row> rows) {
    long ended = rows.stream().filter(r -> r.ending() != null).count();
    LongSummaryStatistics steps = new LongSummaryStatistics();
    for (Row r : rows) {
      Status s = r.status();
      steps.accept(s == null ? 0 : s.step());
    }
    return String.format(
        Locale.ROOT,
        "   …  %d more ranks, %d of them ended, at steps %d to %d",
        rows.size(),
        ended,
        steps.getMin(),
        steps.getMax());
  }
}
