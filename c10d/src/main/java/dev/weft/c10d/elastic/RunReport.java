package dev.weft.c10d.elastic;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What an agent says to its user. Thread-safe. */
final class RunReport {
  private static final Logger log = LoggerFactory.getLogger(RunReport.class);
  private static final int MAX_LINE = 500;

  private final OutputStream target;
  private final String runId;
  private final boolean several;

  RunReport(OutputStream target, String runId, boolean several) {
    this.target = target;
    this.runId = runId;
    this.several = several;
  }

  /** Says that ranks are started. */
  void starts(RunState state, int node, int nprocPerNode) {
    if (!several && state.round() == 0) {
      return; // a plain run on one machine says only what goes wrong
    }
    int first = node * nprocPerNode;
    say(
        "run '%s', attempt %d (%s): node %d of %d starts ranks %d to %d of %d, restarts %d of %d"
            .formatted(
                runId,
                state.round(),
                state.reason(),
                node,
                state.members().size(),
                first,
                first + nprocPerNode - 1,
                state.members().size() * nprocPerNode,
                state.restarts(),
                state.settings().maxRestarts()));
  }

  /** Says why ranks are stopped. */
  void stops(RunState state) {
    say("run '%s', attempt %d ends: %s".formatted(runId, state.round() - 1, state.reason()));
  }

  /** Says what ended the run, the most important last: it is what stands on the screen. */
  void failed(RunState state) {
    FirstFailure failure = state.failure();
    if (failure == null) {
      say("run '" + runId + "' failed: " + state.reason());
      return;
    }
    var lines = new ArrayList<String>();
    if (failure.lastLines().isEmpty()) {
      lines.add("rank " + failure.rank() + " wrote nothing to its standard error");
    } else {
      lines.add("the end of the standard error of rank " + failure.rank() + ":");
      failure.lastLines().forEach(line -> lines.add("    " + cut(line)));
    }
    lines.add("run '" + runId + "' failed: " + cut(state.reason()));
    lines.add(
        "rank %d on node %d (%s) failed first: %s, pid %d"
            .formatted(
                failure.rank(), failure.node(), failure.host(), failure.ending(), failure.pid()));
    if (!failure.trace().isEmpty()) {
      lines.add("    " + cut(failure.reason()));
      failure.trace().lines().forEach(frame -> lines.add("        " + frame));
    }
    say(lines);
  }

  /** Why a round that has too few agents is given up. */
  static String tooFew(RunState state, Duration waited) {
    String late =
        state.pending().isEmpty()
            ? ""
            : "; still stopping their ranks: "
                + String.join(", ", state.pending().stream().map(Member::id).toList());
    return "%d of at least %d nodes joined attempt %d within %d ms (%s)%s"
        .formatted(
            state.members().size(),
            state.settings().minNodes(),
            state.round(),
            waited.toMillis(),
            state.reason(),
            late);
  }

  private static String cut(String line) {
    return line.length() > MAX_LINE ? line.substring(0, MAX_LINE) + "..." : line;
  }

  void say(String line) {
    say(List.of(line));
  }

  private void say(List<String> lines) {
    var text = new StringBuilder();
    for (String line : lines) {
      text.append(line.startsWith(" ") ? "" : "weft: ").append(line).append('\n');
    }
    synchronized (target) {
      try {
        target.write(text.toString().getBytes(UTF_8));
        target.flush();
      } catch (IOException e) {
        log.warn("the agent's output is closed; it was to say: {}", lines, e);
      }
    }
  }
}
