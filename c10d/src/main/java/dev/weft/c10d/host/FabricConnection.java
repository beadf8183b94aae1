package dev.weft.c10d.host;

import dev.weft.tensor.memory.Memory;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * A connection over a {@link Fabric}: a chunk at a time is under way, senders start the first one
 * and the endpoint's thread the rest. Thread-safe.
 */
final class FabricConnection extends Connection {
  /** Hears of a connection that has something to send, or cannot send. */
  interface Owner {
    void hasMore(FabricConnection connection);

    void failed(FabricConnection connection, RuntimeException cause);
  }

  private final Fabric fabric;
  private final Owner owner;
  private final ByteBuffer out;
  private Fabric.@Nullable Transfer underWay;
  private boolean ended;

  FabricConnection(int peer, Mailbox mailbox, Fabric fabric, Owner owner) {
    super(peer, mailbox, true);
    this.fabric = fabric;
    this.owner = owner;
    this.out = ByteBuffer.allocateDirect(fabric.chunk());
  }

  @Override
  void enqueue(Outgoing outgoing) {
    synchronized (lock()) {
      if (ended) {
        outgoing.abandon();
        return;
      }
      boolean unused = add(outgoing);
    }
    if (!pump()) {
      owner.hasMore(this);
    }
  }

  /** Starts to send what is queued; true when nothing is queued or under way. */
  boolean pump() {
    try {
      synchronized (lock()) {
        while (true) {
          Fabric.Transfer t = underWay;
          if (t != null && !t.isDone()) {
            return false;
          }
          underWay = null;
          if (ended || isQueueEmpty()) {
            return true;
          }
          out.clear();
          long base = Memory.addressOf(out);
          fill(out, base);
          underWay = fabric.send(peer(), base, out.position());
        }
      }
    } catch (RuntimeException e) {
      end();
      owner.failed(this, e);
      return true;
    }
  }

  @Override
  boolean isFlushed() {
    return pump();
  }

  void end() {
    synchronized (lock()) {
      ended = true;
      abandonQueue();
    }
  }
}
