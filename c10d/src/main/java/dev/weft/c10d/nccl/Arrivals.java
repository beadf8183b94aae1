package dev.weft.c10d.nccl;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.c10d.StoreTimeoutException;
import dev.weft.c10d.store.Store;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntUnaryOperator;

/**
 * Ranks come together over the store before they call NCCL, which would block without a way out
 * where one of them does not come. Used once, by one thread.
 */
final class Arrivals {
  private static final Duration SLICE = Duration.ofMillis(500);
  private static final byte[] HERE = "1".getBytes(StandardCharsets.UTF_8);
  private static final byte[] GONE = "0".getBytes(StandardCharsets.UTF_8);

  private final Member member;
  private final Store store;
  private final Deadline deadline;

  /** Who arrives. */
  interface Member {
    /** The group and the rank in it, for messages. */
    String describe();

    /**
     * Ends a wait whose group has been aborted.
     *
     * @throws RuntimeException that says why {@code what} cannot be done
     */
    void throwIfUnusable(String what);
  }

  Arrivals(Member member, Store store, Deadline deadline) {
    this.member = member;
    this.store = store;
    this.deadline = deadline;
  }

  /**
   * Waits until all are here.
   *
   * @param key the same on all of them, and used for nothing else
   * @param what they come for, for messages
   * @param rank this one, from 0
   * @param globalRanks what the others are called in messages
   */
  void await(String key, String what, int rank, int size, IntUnaryOperator globalRanks) {
    if (size == 1) {
      return;
    }
    store.set(key + "/" + rank, HERE);
    if (store.add(key + "/count", 1) == size) {
      store.set(key + "/all", HERE);
    }
    if (!awaitKey(key + "/all", what) && !store.check(List.of(key + "/all"))) {
      List<Integer> missing = new ArrayList<>();
      List<Integer> gone = new ArrayList<>();
      for (int r = 0; r < size; r++) {
        if (!store.check(List.of(key + "/" + r))) {
          missing.add(globalRanks.applyAsInt(r));
        } else if (Arrays.equals(store.get(key + "/" + r), GONE)) {
          gone.add(globalRanks.applyAsInt(r));
        }
      }
      // Who comes later, or again, must not take this one to be here; who gives up now must not
      // take it for one that did not come.
      store.set(key + "/" + rank, GONE);
      long unusedCount = store.add(key + "/count", -1);
      throw new OperationTimeoutException(
          what
              + " of "
              + member.describe()
              + " timed out after "
              + deadline.timeout().toMillis()
              + " ms: "
              + absent(missing, gone));
    }
    // The last one to leave takes the keys away, so that a later world with this store starts anew.
    if (store.add(key + "/left", 1) == size) {
      for (int r = 0; r < size; r++) {
        boolean unused = store.deleteKey(key + "/" + r);
      }
      boolean unused =
          store.deleteKey(key + "/count")
              && store.deleteKey(key + "/all")
              && store.deleteKey(key + "/left");
    }
  }

  private static String absent(List<Integer> missing, List<Integer> gone) {
    if (missing.isEmpty() && gone.isEmpty()) {
      return "the last rank came in this very moment, too late";
    }
    if (missing.isEmpty()) {
      return name(gone) + " came, and gave up before the others did";
    }
    return name(missing) + " did not come" + (gone.isEmpty() ? "" : "; " + name(gone) + " gave up");
  }

  private static String name(List<Integer> ranks) {
    return (ranks.size() == 1 ? "rank " : "ranks ") + ranks.toString().replaceAll("[\\[\\]]", "");
  }

  /**
   * Waits for a key in short steps, between which it looks whether the group has been aborted.
   *
   * @return false when the time is over
   */
  private boolean awaitKey(String key, String what) {
    while (true) {
      Duration left = deadline.remaining();
      try {
        store.waitFor(List.of(key), left.compareTo(SLICE) < 0 ? left : SLICE);
        return true;
      } catch (StoreTimeoutException e) {
        member.throwIfUnusable(what);
        if (deadline.hasPassed()) {
          return false;
        }
      }
    }
  }
}
