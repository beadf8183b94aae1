package dev.weft.c10d.host;

import dev.weft.c10d.DistributedException;
import dev.weft.c10d.PeerFailedException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Brings messages from rank to rank together with the receives that were posted for them, in the
 * order of arrival and of posting. Thread-safe; copying is done outside the lock by whoever comes
 * second.
 */
final class ParcelBox {
  private final List<Parcel> arrived = new ArrayList<>();
  private final List<Receipt> posted = new ArrayList<>();

  /** Hands over a message: to the first receive that takes it, else it waits. */
  void deliver(Parcel parcel) {
    Receipt receipt;
    synchronized (this) {
      receipt = removeFirst(posted, r -> r.takes(parcel));
      if (receipt == null) {
        arrived.add(parcel);
        return;
      }
    }
    if (!receipt.take(parcel)) {
      post(receipt); // the sender gave up meanwhile
    }
  }

  /** Posts a receive: takes the first message that fits, else waits. */
  void post(Receipt receipt) {
    while (true) {
      Parcel parcel;
      synchronized (this) {
        parcel = removeFirst(arrived, receipt::takes);
        if (parcel == null) {
          posted.add(receipt);
          return;
        }
      }
      if (receipt.take(parcel)) {
        return;
      }
    }
  }

  /** Takes a receive back; false when its message is there already. */
  synchronized boolean cancel(Receipt receipt) {
    return removeFirst(posted, r -> r.equals(receipt)) != null;
  }

  /** True while a receive is posted. */
  synchronized boolean isAwaited() {
    return !posted.isEmpty();
  }

  void peerFailed(Failure failure) {
    List<Receipt> all;
    synchronized (this) {
      all = new ArrayList<>(posted);
      posted.clear();
    }
    for (Receipt r : all) {
      boolean unused = r.work().fail(r.work().peerFailed(failure));
    }
  }

  void peerLeft(int globalRank) {
    List<Receipt> all = new ArrayList<>();
    synchronized (this) {
      removeAll(posted, r -> r.globalSource() == globalRank, all);
    }
    for (Receipt r : all) {
      boolean unused = r.work().fail(left(r.work(), globalRank));
    }
  }

  static PeerFailedException left(MessageWork work, int globalRank) {
    return new PeerFailedException(
        work.describe() + " cannot end: rank " + globalRank + " has left the world");
  }

  /** Ends the posted receives of a group. */
  void failGroup(long group, RuntimeException cause) {
    List<Receipt> receipts = new ArrayList<>();
    synchronized (this) {
      removeAll(posted, r -> r.group() == group, receipts);
    }
    for (Receipt r : receipts) {
      boolean unused = r.work().fail(cause);
    }
  }

  /** Forgets the messages of a group that nobody received. */
  void closeGroup(long group) {
    List<Parcel> parcels = new ArrayList<>();
    synchronized (this) {
      removeAll(arrived, p -> p.group() == group, parcels);
    }
    for (Parcel p : parcels) {
      p.payload().release();
      p.outcome()
          .refused(
              new DistributedException(
                  "the receiver has destroyed the group without receiving the message"));
    }
  }

  private static <T> @Nullable T removeFirst(List<T> list, Predicate<T> wanted) {
    Iterator<T> it = list.iterator();
    while (it.hasNext()) {
      T t = it.next();
      if (wanted.test(t)) {
        it.remove();
        return t;
      }
    }
    return null;
  }

  private static <T> void removeAll(List<T> list, Predicate<T> wanted, List<T> into) {
    Iterator<T> it = list.iterator();
    while (it.hasNext()) {
      T t = it.next();
      if (wanted.test(t)) {
        it.remove();
        into.add(t);
      }
    }
  }
}
