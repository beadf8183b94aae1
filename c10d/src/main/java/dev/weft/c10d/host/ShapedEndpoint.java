package dev.weft.c10d.host;

import dev.weft.c10d.LinkShape;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.Memory;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * An endpoint whose ways to some ranks are slow, see {@link LinkShape}. Messages for them wait in
 * one thread's queue until they are due; those of one way keep their order. Thread-safe.
 */
final class ShapedEndpoint implements Endpoint, Runnable {
  private final Endpoint inner;
  private final LinkShape shape;
  // Null where the way is as it was.
  private static final long READ_NANOS = 4_000_000_000L;

  private final @Nullable Link[] slow;
  private final PriorityQueue<Held> queue =
      new PriorityQueue<>(Comparator.comparingLong(Held::due).thenComparingLong(Held::number));
  private final Thread thread;
  private long numbers;
  private boolean closed;

  /** A message on its way. */
  private record Held(long due, long number, Runnable deliver) {}

  /** Bytes that are on their way, in memory of their own. */
  private record Copy(long address, long bytes, Loans loans) {}

  // The thread's. One that has been read goes after the next message.
  private final List<Copy> copies = new ArrayList<>();

  ShapedEndpoint(Endpoint inner, LinkShape shape, int rank, int worldSize) {
    this.inner = inner;
    this.shape = shape;
    this.slow = new Link[worldSize];
    for (int r = 0; r < worldSize; r++) {
      slow[r] = shape.isSlow(rank, r) ? new SlowLink(inner.link(r)) : null;
    }
    this.thread = new Thread(this, "weft-slow-links-" + rank);
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public Mailbox mailbox() {
    return inner.mailbox();
  }

  @Override
  public Link link(int globalRank) {
    Link link = slow[globalRank];
    return link == null ? inner.link(globalRank) : link;
  }

  @Override
  public void pause(Object blocker, long nanos, int turn) {
    inner.pause(blocker, nanos, turn);
  }

  /** Delivers what is due; after the end what is left, at once. */
  @Override
  public void run() {
    while (true) {
      Held next = null;
      long wait;
      synchronized (queue) {
        Held first = queue.peek();
        if (first == null && closed) {
          break;
        }
        wait = first == null ? Long.MAX_VALUE : first.due - System.nanoTime();
        if (first != null && (wait <= 0 || closed)) {
          next = queue.remove();
        }
      }
      if (next == null) {
        LockSupport.parkNanos(this, wait);
        continue;
      }
      next.deliver.run();
      freeCopies(false);
    }
    // What was sent last may not have been read yet, though the sender's part in it is over.
    long end = System.nanoTime() + READ_NANOS;
    while (copies.stream().anyMatch(c -> !c.loans.allBack()) && System.nanoTime() < end) {
      LockSupport.parkNanos(this, 1_000_000);
    }
    freeCopies(true);
  }

  private void freeCopies(boolean all) {
    for (Iterator<Copy> i = copies.iterator(); i.hasNext(); ) {
      Copy c = i.next();
      if (all) {
        c.loans.revoke();
      }
      if (c.loans.allBack()) {
        HostMemory.free(c.address, c.bytes);
        i.remove();
      }
    }
  }

  @Override
  public void close() {
    synchronized (queue) {
      closed = true;
    }
    LockSupport.unpark(thread);
    try {
      thread.join(5_000);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    inner.close();
  }

  /** One way. */
  private final class SlowLink implements Link {
    private final Link fast;
    // When what was sent last has left; guarded by the queue.
    private long free = Long.MIN_VALUE;

    SlowLink(Link fast) {
      this.fast = fast;
    }

    private void hold(long bytes, Runnable deliver) {
      synchronized (queue) {
        long now = System.nanoTime();
        free = (free == Long.MIN_VALUE ? now : Math.max(free, now)) + shape.occupiedNanos(bytes);
        queue.add(new Held(free + shape.delay().toNanos(), numbers++, deliver));
      }
      LockSupport.unpark(thread);
    }

    @Override
    public void send(Key key, int source, @Nullable Signature signature, byte @Nullable [] inline) {
      hold(inline == null ? 0 : inline.length, () -> fast.send(key, source, signature, inline));
    }

    @Override
    public void lend(Key key, int source, long address, long bytes, Loans loans) {
      long copy = HostMemory.allocate(bytes);
      Memory.copy(address, copy, bytes);
      hold(
          bytes,
          () -> {
            Loans own = new Loans();
            copies.add(new Copy(copy, bytes, own));
            fast.lend(key, source, copy, bytes, own);
          });
    }

    @Override
    public void wake() {
      hold(0, fast::wake);
    }

    @Override
    public Posting prepare(Letter letter) {
      return new SlowPosting(this, letter, fast.prepare(letter));
    }
  }

  /** A message from rank to rank, whose memory stays until its outcome is told. */
  private static final class SlowPosting implements Link.Posting {
    private final SlowLink link;
    private final Link.Letter letter;
    private final Link.Posting posting;
    private boolean posted;
    private boolean cancelled;

    SlowPosting(SlowLink link, Link.Letter letter, Link.Posting posting) {
      this.link = link;
      this.letter = letter;
      this.posting = posting;
    }

    @Override
    public void post() {
      link.hold(letter.piece().bytes(), this::postNow);
    }

    private synchronized void postNow() {
      if (!cancelled) {
        posted = true;
        posting.post();
      }
    }

    @Override
    public synchronized boolean cancel() {
      if (!posted) {
        cancelled = true;
        return true;
      }
      return posting.cancel();
    }
  }
}
