package dev.weft.parallel.pipeline;

import java.util.ArrayList;
import java.util.List;

/**
 * When a rank of a pipeline has computed what; without the time in which it waits for messages. Not
 * thread-safe: belongs to the thread that acts for the rank, and is read when it is done.
 */
public final class Trace {
  /** By {@link System#nanoTime}. */
  record Entry(Action action, long startNanos, long endNanos) {}

  private final List<Entry> entries = new ArrayList<>();

  /** An empty one. */
  public Trace() {}

  void add(Action action, long startNanos) {
    entries.add(new Entry(action, startNanos, System.nanoTime()));
  }

  List<Entry> entries() {
    return entries;
  }

  /** What was measured so far. */
  public Trace copy() {
    Trace copy = new Trace();
    copy.entries.addAll(entries);
    return copy;
  }

  /** Forgets what was measured. */
  public void clear() {
    entries.clear();
  }
}
