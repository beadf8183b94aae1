package dev.weft.c10d.host;

import dev.weft.c10d.DistributedException;
import dev.weft.c10d.LinkShape;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.Memory;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An endpoint whose ways to some ranks are slow, see {@link LinkShape}. Messages for them wait in
 * one thread's queue until they are due; those of one way keep their order. Data are copied when
 * they are sent, and the copy goes along with the message. Thread-safe.
 */
final class ShapedEndpoint implements Endpoint, Runnable {
  private static final Logger LOG = LoggerFactory.getLogger(ShapedEndpoint.class);

  private final Endpoint inner;
  private final LinkShape shape;
  // Null where the way is as it was.
  private final @Nullable Link[] slow;
  private final PriorityQueue<Held> queue =
      new PriorityQueue<>(Comparator.comparingLong(Held::due).thenComparingLong(Held::number));
  private final Thread thread;
  private long numbers;
  private boolean closed;
  private boolean broken;

  /**
   * A message on its way.
   *
   * @param drop lets go of it in place of {@code deliver}
   */
  private record Held(long due, long number, Runnable deliver, Runnable drop) {}

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

  /**
   * What cannot be delivered ends everything on this rank: what waits for an answer to it would
   * wait in vain.
   */
  @Override
  public void run() {
    try {
      deliver();
    } catch (RuntimeException | Error e) {
      LOG.error("{} cannot deliver any more", thread.getName(), e);
      DistributedException told =
          new DistributedException(
              "the thread that delivers over simulated slow links has failed: " + e, e);
      mailbox().ended(new Failure(-1, told));
      dropAll();
    }
  }

  private void dropAll() {
    List<Held> rest;
    synchronized (queue) {
      broken = true;
      rest = List.copyOf(queue);
      queue.clear();
    }
    rest.forEach(h -> h.drop.run());
  }

  /** Delivers what is due; after the end what is left, at once. */
  private void deliver() {
    while (true) {
      Held next = null;
      long wait;
      synchronized (queue) {
        Held first = queue.peek();
        if (first == null && closed) {
          broken = true; // what comes later is dropped
          return;
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
      try {
        next.deliver.run();
      } catch (RuntimeException | Error e) {
        next.drop.run();
        throw e;
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
      hold(bytes, deliver, () -> {});
    }

    private void hold(long bytes, Runnable deliver, Runnable drop) {
      boolean late;
      synchronized (queue) {
        late = broken;
        if (!late) {
          long now = System.nanoTime();
          free = (free == Long.MIN_VALUE ? now : Math.max(free, now)) + shape.occupiedNanos(bytes);
          queue.add(new Held(free + shape.delay().toNanos(), numbers++, deliver, drop));
        }
      }
      if (late) {
        drop.run();
      }
      LockSupport.unpark(thread);
    }

    @Override
    public void send(Key key, int source, @Nullable Signature signature, byte @Nullable [] inline) {
      hold(inline == null ? 0 : inline.length, () -> fast.send(key, source, signature, inline));
    }

    @Override
    public void lend(Key key, int source, long address, long bytes, Loans loans) {
      long copy = bytes == 0 ? 0 : HostMemory.allocate(bytes);
      Memory.copy(address, copy, bytes);
      give(key, source, copy, bytes);
    }

    @Override
    public void give(Key key, int source, long address, long bytes) {
      hold(
          bytes,
          () -> fast.give(key, source, address, bytes),
          new Payload.Owned(address, bytes)::release);
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
