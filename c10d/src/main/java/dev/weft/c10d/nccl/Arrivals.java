package dev.weft.c10d.nccl;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.c10d.StoreTimeoutException;
import dev.weft.c10d.store.Store;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntUnaryOperator;

/**
 * Ranks come together over the store before they call NCCL, which would block without a way out
 * where one of them does not come. Used once, by one thread.
 */
final class Arrivals {
  private static final Duration SLICE = Duration.ofMillis(500);
  private static final byte[] HERE = "1".getBytes(StandardCharsets.UTF_8);

  private final NcclBackend backend;
  private final Store store;
  private final Deadline deadline;

  Arrivals(NcclBackend backend, Store store, Deadline deadline) {
    this.backend = backend;
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
      for (int r = 0; r < size; r++) {
        if (!store.check(List.of(key + "/" + r))) {
          missing.add(globalRanks.applyAsInt(r));
        }
      }
      // Who comes later, or again, must not take this one to be here.
      boolean unused = store.deleteKey(key + "/" + rank);
      long unusedCount = store.add(key + "/count", -1);
      throw new OperationTimeoutException(
          what
              + " of group "
              + backend.describeGroup()
              + " on rank "
              + backend.globalRank(backend.rank())
              + " timed out after "
              + deadline.timeout().toMillis()
              + " ms: rank"
              + (missing.size() == 1 ? " " : "s ")
              + missing.toString().replaceAll("[\\[\\]]", "")
              + " did not come");
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

  /**
   * Waits for a key in short steps, between which it looks whether the group has been aborted.
   *
   * @return false when the time is over
   */
  boolean awaitKey(String key, String what) {
    while (true) {
      Duration left = deadline.remaining();
      try {
        store.waitFor(List.of(key), left.compareTo(SLICE) < 0 ? left : SLICE);
        return true;
      } catch (StoreTimeoutException e) {
        Throwable stopped = backend.failure();
        if (stopped != null) {
          throw backend.unusable(what, stopped);
        }
        if (deadline.hasPassed()) {
          return false;
        }
      }
    }
  }
}
