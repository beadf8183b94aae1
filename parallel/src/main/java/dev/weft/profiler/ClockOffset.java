package dev.weft.profiler;

import dev.weft.c10d.RankContext;
import dev.weft.c10d.store.PrefixStore;
import dev.weft.c10d.store.Store;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * How far rank 0's monotonic clock is ahead of this rank's, by Cristian's method: of some exchanges
 * over the store the shortest counts, and rank 0's answer is taken to be made in its middle.
 *
 * @param nanos to be added to this rank's {@link System#nanoTime} to get rank 0's
 * @param uncertaintyNanos half the time of the shortest exchange: the error is not larger
 */
record ClockOffset(long nanos, long uncertaintyNanos) {
  private static final int ROUNDS = 32;
  private static final String PREFIX = "weft/profiler/clock";

  /** Rank 0's, or that of a program without ranks. */
  static final ClockOffset NONE = new ClockOffset(0, 0);

  /**
   * Finds it; all ranks of the world call this alike. Ranks of one Linux have one monotonic clock,
   * so theirs is 0, unless the exchange says that it cannot be (a time namespace).
   */
  static ClockOffset measure(RankContext context) {
    if (context.worldSize() == 1) {
      return NONE;
    }
    Store store = new PrefixStore(PREFIX, context.store());
    String boot = bootId();
    if (context.rank() == 0) {
      store.set("boot", boot);
    }
    ClockOffset measured = exchange(context);
    boolean same = !boot.isEmpty() && boot.equals(store.getString("boot"));
    return same && Math.abs(measured.nanos) <= measured.uncertaintyNanos ? NONE : measured;
  }

  /** What names a run of the kernel; empty where there is none. */
  private static String bootId() {
    try {
      return Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip();
    } catch (IOException e) {
      return ""; // no Linux
    }
  }

  /** Measures it; rank 0 answers the others one by one. */
  static ClockOffset exchange(RankContext context) {
    Store store = new PrefixStore(PREFIX, context.store());
    if (context.rank() > 0) {
      return ask(store, context.rank());
    }
    for (int rank = 1; rank < context.worldSize(); rank++) {
      answer(store, rank);
    }
    return NONE;
  }

  // Who has got a value removes it, so that the keys serve again.
  private static ClockOffset ask(Store store, int rank) {
    ClockOffset best = new ClockOffset(0, Long.MAX_VALUE);
    for (int i = 0; i < ROUNDS; i++) {
      long sent = System.nanoTime();
      store.set("ask/" + rank, "");
      long there = Long.parseLong(store.getString("answer/" + rank));
      long took = System.nanoTime() - sent;
      boolean unused = store.deleteKey("answer/" + rank);
      if (took / 2 < best.uncertaintyNanos) {
        best = new ClockOffset(there - sent - took / 2, took / 2);
      }
    }
    return best;
  }

  private static void answer(Store store, int rank) {
    for (int i = 0; i < ROUNDS; i++) {
      byte[] unused = store.get("ask/" + rank);
      boolean removed = store.deleteKey("ask/" + rank);
      if (!removed) {
        throw new IllegalStateException(
            "two profilers of rank " + rank + " measure clocks at once; expected one at a time");
      }
      store.set("answer/" + rank, String.valueOf(System.nanoTime()));
    }
  }
}
