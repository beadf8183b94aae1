package dev.weft.c10d.host;

import dev.weft.c10d.DistributedException;
import dev.weft.c10d.FailureNotice;
import dev.weft.c10d.RankContext;
import dev.weft.tensor.memory.Memory;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A rank whose peers are reached through a {@link Fabric}. One daemon thread receives and carries
 * on what is being sent; it looks often while someone waits and seldom while nobody does. A fabric
 * does not tell of ranks that die, so it also looks into the store for their last words.
 */
final class FabricEndpoint implements Endpoint, FabricConnection.Owner {
  private static final Logger LOG = LoggerFactory.getLogger(FabricEndpoint.class);
  private static final int EAGER_TURNS = 100;
  private static final long BUSY_NANOS = 20_000;
  private static final long IDLE_NANOS = 1_000_000;
  private static final long NOTICE_NANOS = 1_000_000_000;
  private static final long FLUSH_NANOS = 2_000_000_000;

  private static final List<FabricConnection> NONE = List.of();

  private final RankContext context;
  private final Fabric fabric;
  private final Mailbox mailbox = new Mailbox();
  private final @Nullable FabricConnection[] connections;
  private final Set<FabricConnection> writing = ConcurrentHashMap.newKeySet();
  private final AtomicBoolean asking = new AtomicBoolean();
  private final ByteBuffer in;
  private final Thread thread;
  private final ReentrantLock stepping = new ReentrantLock();
  private volatile long steppedByWaiter = System.nanoTime() - IDLE_NANOS;
  private volatile boolean closed;

  FabricEndpoint(RankContext context, Fabric fabric) {
    this.context = context;
    this.fabric = fabric;
    this.in = ByteBuffer.allocateDirect(fabric.chunk());
    this.connections = new @Nullable FabricConnection[context.worldSize()];
    for (int r = 0; r < connections.length; r++) {
      if (r != context.rank()) {
        connections[r] = new FabricConnection(r, mailbox, fabric, this);
      }
    }
    this.thread = new Thread(this::run, "weft-fabric-" + context.rank());
    thread.setDaemon(true);
    thread.start();
  }

  Fabric fabric() {
    return fabric;
  }

  @Override
  public Mailbox mailbox() {
    return mailbox;
  }

  @Override
  public Link link(int globalRank) {
    return Objects.requireNonNull(connections[globalRank]);
  }

  @Override
  public void hasMore(FabricConnection connection) {
    writing.add(connection);
    LockSupport.unpark(thread);
  }

  @Override
  public void failed(FabricConnection connection, RuntimeException cause) {
    context.peerFailed(connection.peer(), cause);
  }

  private void run() {
    int turnsWithout = 0;
    long asked = System.nanoTime();
    while (!closed) {
      boolean others = System.nanoTime() - steppedByWaiter < IDLE_NANOS;
      boolean moved = !others && step();
      turnsWithout = moved ? 0 : turnsWithout + 1;
      if (others || turnsWithout > EAGER_TURNS) {
        boolean awaited = isAwaited();
        LockSupport.parkNanos(this, awaited && !others ? BUSY_NANOS : IDLE_NANOS);
        long now = System.nanoTime();
        if (awaited && now - asked > NOTICE_NANOS && asking.compareAndSet(false, true)) {
          asked = now;
          ProgressThreads.POOL.execute(this::askStore);
        }
      } else {
        Spinning.yieldToOthers();
      }
    }
  }

  /** Who waits does the work meanwhile. */
  @Override
  public void pause(Object blocker, long nanos, int turn) {
    boolean moved = step();
    steppedByWaiter = System.nanoTime();
    if (moved) {
      return;
    }
    if (turn < Spinning.YIELDS) {
      Spinning.yieldToOthers();
    } else {
      LockSupport.parkNanos(blocker, Math.min(nanos, BUSY_NANOS));
    }
  }

  private boolean isAwaited() {
    if (mailbox.isAwaited() || !writing.isEmpty()) {
      return true;
    }
    for (FabricConnection c : connections) {
      if (c != null && c.awaitsAnswers()) {
        return true;
      }
    }
    return false;
  }

  /** Receives and sends what is there; false when there was nothing, or someone else does it. */
  private boolean step() {
    if (!stepping.tryLock()) {
      return false;
    }
    try {
      return !closed && stepLocked();
    } finally {
      stepping.unlock();
    }
  }

  private boolean stepLocked() {
    boolean moved = false;
    for (FabricConnection c : writing.isEmpty() ? NONE : List.copyOf(writing)) {
      // Removed first: what is queued after the pump adds it again.
      writing.remove(c);
      if (c.pump()) {
        moved = true;
      } else {
        writing.add(c);
      }
    }
    try {
      int source = fabric.receive(in);
      if (source >= 0) {
        FabricConnection c = Objects.requireNonNull(connections[source]);
        c.take(in, Memory.addressOf(in));
        if (c.saidGoodbye()) {
          context.peerLeft(source);
        }
        moved = true;
      }
      Abandoned.sweep();
    } catch (RuntimeException | Error e) {
      LOG.error("rank {} cannot receive any more through {}", context.rank(), fabric.describe(), e);
      mailbox.ended(new Failure(-1, e));
      closed = true;
    }
    return moved;
  }

  /** After this nobody receives any more. */
  private void awaitStepEnd() {
    stepping.lock();
    try {
      closed = true;
    } finally {
      stepping.unlock();
    }
  }

  private void askStore() {
    try {
      FailureNotice.read(context.store().withTimeout(Notices.TIMEOUT))
          .filter(n -> n.rank() != context.rank() && n.rank() >= 0)
          .ifPresent(n -> context.peerFailed(n.rank(), Notices.asFailure(n)));
    } catch (DistributedException | IllegalStateException e) {
      LOG.debug("the store does not tell whether something failed", e);
    } finally {
      asking.set(false);
    }
  }

  @Override
  public void close() {
    for (FabricConnection c : connections) {
      if (c != null) {
        c.sayGoodbye();
      }
    }
    long end = System.nanoTime() + FLUSH_NANOS;
    boolean flushed = false;
    while (!flushed && System.nanoTime() < end) {
      flushed = true;
      for (FabricConnection c : connections) {
        flushed &= c == null || c.isFlushed();
      }
      if (!flushed) {
        LockSupport.parkNanos(this, 100_000);
      }
    }
    awaitStepEnd();
    LockSupport.unpark(thread);
    boolean interrupted = false;
    try {
      thread.join(2_000);
    } catch (InterruptedException e) {
      interrupted = true;
    }
    for (FabricConnection c : connections) {
      if (c != null) {
        c.end();
        c.free();
      }
    }
    mailbox.close();
    if (!flushed) {
      LOG.warn(
          "rank {} could not tell all others that it leaves; {} still has its data",
          context.rank(),
          fabric.describe());
    }
    fabric.close();
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
