package dev.weft.c10d;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.weft.c10d.store.Store;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

/**
 * A barrier over the store that says who is missing. Group rank 0 waits for all others and answers
 * them; it works while the backend's own connections do not.
 */
final class MonitoredBarrier {
  private static final Duration SLICE = Duration.ofMillis(200);
  private static final Duration REMOVE_LIMIT = Duration.ofSeconds(2);
  private static final Duration ANSWER_GRACE = Duration.ofSeconds(3);
  private static final String ALL_THERE = "all there";

  private final ProcessGroup group;
  private final Store store;
  private final String key;
  private final Deadline deadline;

  MonitoredBarrier(ProcessGroup group, long number, Duration timeout) {
    this.group = group;
    this.store = group.context().store();
    this.key = "weft/monitored_barrier/" + group.name() + "/" + number + "/";
    this.deadline = Deadline.after(timeout);
  }

  void run(boolean waitAllRanks) {
    if (group.rank() == 0) {
      lead(waitAllRanks);
    } else {
      follow();
    }
  }

  private void lead(boolean waitAllRanks) {
    List<Integer> missing = new ArrayList<>();
    for (int r = 1; r < group.size(); r++) {
      if (!arrives(key + r, deadline)) {
        missing.add(group.globalRank(r));
        if (!waitAllRanks) {
          break;
        }
      }
    }
    if (missing.isEmpty()) {
      for (int r = 1; r < group.size(); r++) {
        boolean unused = store.deleteKey(key + r);
      }
      if (group.size() > 1) {
        store.set(key + "answer", ALL_THERE);
      }
      return;
    }
    String who = missing.size() == 1 ? "rank " + missing.get(0) : "ranks " + missing;
    String text =
        what()
            + " timed out after "
            + deadline.timeout().toMillis()
            + " ms: "
            + who
            + " did not arrive"
            + (waitAllRanks ? "" : " (the first one missing; waitAllRanks names all)");
    store.set(key + "answer", text);
    int there = 0;
    for (int r = 1; r < group.size(); r++) {
      there += store.deleteKey(key + r) ? 1 : 0;
    }
    int readers = there;
    // Who comes late is told at once; the answer stays for that as long as this rank does.
    group.context().closeAtEnd(() -> removeAnswer(readers));
    throw new OperationTimeoutException(text);
  }

  /** Takes it away when those that were there have read it, or do not any more. */
  private void removeAnswer(int readers) {
    Store brief = store.withTimeout(REMOVE_LIMIT);
    Deadline limit = Deadline.after(REMOVE_LIMIT);
    while (!limit.hasPassed() && brief.add(key + "read", 0) < readers) {
      LockSupport.parkNanos(this, 1_000_000);
    }
    boolean unused = brief.deleteKey(key + "answer");
    unused = brief.deleteKey(key + "read");
    for (int r = 1; r < group.size(); r++) {
      unused = brief.deleteKey(key + r);
    }
  }

  private void follow() {
    if (!store.check(List.of(key + "answer"))) {
      store.set(key + group.rank(), "");
    }
    boolean answered =
        arrives(key + "answer", deadline) || arrives(key + "answer", Deadline.after(ANSWER_GRACE));
    if (!answered) {
      boolean unused = store.deleteKey(key + group.rank());
      throw new OperationTimeoutException(
          what()
              + " timed out after "
              + deadline.timeout().toMillis()
              + " ms: this rank did arrive, and rank "
              + group.globalRank(0)
              + ", which counts the others, did not answer");
    }
    String answer = new String(store.get(key + "answer"), UTF_8);
    // The last one to read it takes it away.
    if (store.add(key + "read", 1) == group.size() - 1) {
      boolean unused = store.deleteKey(key + "answer") && store.deleteKey(key + "read");
    }
    if (!answer.equals(ALL_THERE)) {
      throw new OperationTimeoutException(
          what() + ": this rank did arrive, and rank " + group.globalRank(0) + " says: " + answer);
    }
  }

  /** Waits for a key in short steps, between which it looks whether a member has failed. */
  private boolean arrives(String name, Deadline limit) {
    while (true) {
      Duration left = limit.remaining();
      try {
        store.waitFor(List.of(name), left.compareTo(SLICE) < 0 ? left : SLICE);
        return true;
      } catch (StoreSilentException e) {
        throw e; // nobody is known to be missing
      } catch (StoreTimeoutException e) {
        checkMembers(e);
        if (limit.hasPassed()) {
          return false;
        }
      }
    }
  }

  private void checkMembers(StoreTimeoutException waited) {
    for (Map.Entry<Integer, Throwable> e : group.context().failedPeers().entrySet()) {
      if (group.ranks().contains(e.getKey())) {
        PeerFailedException failed =
            new PeerFailedException(
                what() + " cannot end: rank " + e.getKey() + " failed: " + e.getValue(),
                e.getValue());
        failed.addSuppressed(waited);
        throw failed;
      }
    }
  }

  private String what() {
    return "monitored_barrier in group "
        + group.describe()
        + " on rank "
        + group.globalRank(group.rank());
  }
}
