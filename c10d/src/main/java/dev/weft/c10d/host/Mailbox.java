package dev.weft.c10d.host;

import dev.weft.c10d.PeerFailedException;
import dev.weft.c10d.PeerListener;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Where all messages for one rank arrive, whichever link brings them. Thread-safe. It also knows
 * which other ranks have failed or left, and wakes whoever waits when that changes.
 */
final class Mailbox implements PeerListener {
  private final ConcurrentHashMap<Key, Inbox> inboxes = new ConcurrentHashMap<>();
  private final Set<Thread> waiters = ConcurrentHashMap.newKeySet();
  private final Set<Integer> left = ConcurrentHashMap.newKeySet();
  private final Set<Watcher> watchers = ConcurrentHashMap.newKeySet();
  private final ConcurrentHashMap<Long, GivenUp> givenUp = new ConcurrentHashMap<>();
  private final ParcelBox parcels = new ParcelBox();
  private volatile @Nullable Failure failure;
  private volatile boolean closed;

  /** The first collective that cannot end, and why. */
  record GivenUp(long sequence, PeerFailedException why) {}

  /** Hears that another rank has ended; a null failure means well. */
  interface Watcher {
    void peerEnded(int globalRank, @Nullable Failure failure);
  }

  void watch(Watcher watcher) {
    watchers.add(watcher);
  }

  void unwatch(Watcher watcher) {
    watchers.remove(watcher);
  }

  /** The inbox of a key, made if it is new. */
  Inbox inbox(Key key) {
    Inbox there = inboxes.get(key);
    return there != null ? there : inboxes.computeIfAbsent(key, k -> new Inbox());
  }

  void deliver(Key key, Message message) {
    if (key.phase() == Key.GIVEN_UP) {
      GivenUp told = new GivenUp(key.sequence(), new PeerFailedException(message.text()));
      givenUp.merge(key.group(), told, (a, b) -> b.sequence() < a.sequence() ? b : a);
      wakeAll();
      return;
    }
    inbox(key).add(message);
    if (closed) {
      close(key);
    }
  }

  /** Forgets a key that is done with. */
  void close(Key key) {
    Inbox box = inboxes.remove(key);
    if (box != null) {
      box.discard();
    }
  }

  /** Forgets everything of a group. */
  void closeGroup(long group) {
    for (Key key : inboxes.keySet()) {
      if (key.group() == group) {
        close(key);
      }
    }
    givenUp.remove(group);
    parcels.closeGroup(group);
  }

  /** The first collective of a group that another rank has given up, or null. */
  @Nullable GivenUp givenUp(long group) {
    return givenUp.isEmpty() ? null : givenUp.get(group);
  }

  /** The rank has left: lets go of all messages that have come, and of what still comes. */
  void close() {
    closed = true;
    inboxes.keySet().forEach(this::close);
  }

  ParcelBox parcels() {
    return parcels;
  }

  // ---- other ranks ----

  /** The first failure of another rank, or null. */
  @Nullable Failure failure() {
    return failure;
  }

  boolean hasLeft(int globalRank) {
    return left.contains(globalRank);
  }

  /** The ranks that have ended well so far. */
  Set<Integer> left() {
    return left.isEmpty() ? Set.of() : Set.copyOf(left);
  }

  @Override
  public void peerFailed(int globalRank, Throwable cause) {
    ended(new Failure(globalRank, cause));
  }

  /** Ends everything, as nothing can arrive any more. */
  void ended(Failure f) {
    synchronized (this) {
      if (failure == null) {
        failure = f;
      }
    }
    parcels.peerFailed(f);
    watchers.forEach(w -> w.peerEnded(f.rank(), f));
    wakeAll();
  }

  @Override
  public void peerLeft(int globalRank) {
    left.add(globalRank);
    parcels.peerLeft(globalRank);
    watchers.forEach(w -> w.peerEnded(globalRank, null));
    wakeAll();
  }

  /** Adds a thread that is about to wait, so that it is woken when a rank fails. */
  void enroll(Thread thread) {
    waiters.add(thread);
  }

  void resign(Thread thread) {
    waiters.remove(thread);
  }

  /** True while someone waits for a message. */
  boolean isAwaited() {
    return !waiters.isEmpty() || parcels.isAwaited();
  }

  void wakeAll() {
    waiters.forEach(LockSupport::unpark);
  }
}
