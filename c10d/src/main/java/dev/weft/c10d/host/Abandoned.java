package dev.weft.c10d.host;

import java.util.Iterator;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * Transfers of a {@link Fabric} that an operation gave up on. A library cannot take them back, so
 * the memory they use is kept until they are done, or for good. Thread-safe.
 */
final class Abandoned {
  private static final ConcurrentLinkedQueue<Entry> ENTRIES = new ConcurrentLinkedQueue<>();

  private record Entry(List<Fabric.Transfer> transfers, Runnable free) {}

  private Abandoned() {}

  /** Keeps memory until the transfers are done; {@code free} lets it go. */
  static void add(List<Fabric.Transfer> transfers, Runnable free) {
    ENTRIES.add(new Entry(List.copyOf(transfers), free));
  }

  /** Lets go of what has ended meanwhile. */
  static void sweep() {
    if (ENTRIES.isEmpty()) {
      return;
    }
    synchronized (ENTRIES) {
      for (Iterator<Entry> it = ENTRIES.iterator(); it.hasNext(); ) {
        Entry e = it.next();
        if (e.transfers().stream().allMatch(Fabric.Transfer::isDone)) {
          it.remove();
          e.free().run();
        }
      }
    }
  }
}
