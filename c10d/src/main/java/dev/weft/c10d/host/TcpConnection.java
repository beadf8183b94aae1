package dev.weft.c10d.host;

import dev.weft.tensor.memory.Memory;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import org.jspecify.annotations.Nullable;

/**
 * A connection over a socket. Senders write as much as the socket takes, the loop's thread writes
 * the rest and reads all that comes, so no rank waits for another to read. Thread-safe.
 */
final class TcpConnection extends Connection {
  private static final int BUFFER = 1 << 17;

  /** Hears of the connection's end, once. */
  interface EndListener {
    /** A null cause means a good-bye. */
    void ended(TcpConnection connection, @Nullable Throwable cause);
  }

  private final SocketChannel channel;
  private final EndListener listener;
  private final RingOpening opening;
  private final ByteBuffer in = ByteBuffer.allocateDirect(BUFFER);
  private final ByteBuffer out = ByteBuffer.allocateDirect(BUFFER);
  private @Nullable SelectionKey key;
  private boolean ended;
  private volatile boolean usesRing;

  /**
   * A connection that has been made.
   *
   * @param rings for messages in place of the socket, where they can be had
   */
  TcpConnection(
      int peer,
      SocketChannel channel,
      Mailbox mailbox,
      EndListener listener,
      RingOpening.Rings rings) {
    super(peer, mailbox, true);
    this.channel = channel;
    this.listener = listener;
    this.opening =
        new RingOpening(rings, peer, mailbox, head -> enqueue(outgoing(head)), this::end);
  }

  SocketChannel channel() {
    return channel;
  }

  void registered(SelectionKey key) {
    synchronized (lock()) {
      this.key = key;
    }
  }

  // ---- the ring ----

  @Override
  public Posting prepare(Letter letter) {
    RingConnection ring = opening.ring();
    if (ring != null && (usesRing || !awaitsAnswers())) {
      // Those sent over TCP are received: none can be overtaken.
      usesRing = true;
      return ring.prepare(letter);
    }
    opening.ask();
    return super.prepare(letter);
  }

  @Override
  public @Nullable Attendance attend() {
    RingConnection ring = opening.ring();
    return ring == null ? null : ring.attend();
  }

  @Override
  void ringFrame(byte type, ByteBuffer header) {
    opening.frame(type, header);
  }

  @Override
  public void frame(byte type, ByteBuffer header, @Nullable Payload payload) {
    RingConnection ring = opening.ring();
    if (type == Frame.GOODBYE && ring != null) {
      ring.drain(); // who leaves has written all it will
    }
    super.frame(type, header, payload);
  }

  /** True when all messages for the peer are where it can read them without this rank. */
  boolean isRingFlushed() {
    RingConnection ring = opening.ring();
    return ring == null || ring.isFlushed();
  }

  /** Gives memory back, when the loop has ended. */
  void release() {
    opening.release();
    free();
  }

  // ---- sending ----

  @Override
  void enqueue(Outgoing outgoing) {
    try {
      synchronized (lock()) {
        if (ended) {
          outgoing.abandon();
          return;
        }
        if (add(outgoing)) {
          pump();
        }
        SelectionKey k = key;
        if ((!isQueueEmpty() || out.position() > 0) && k != null) {
          int unused = k.interestOpsOr(SelectionKey.OP_WRITE);
          k.selector().wakeup();
        }
      }
    } catch (IOException e) {
      end(e);
    }
  }

  /** Writes until all is written or the socket takes no more. Under the lock. */
  private void pump() throws IOException {
    long base = Memory.addressOf(out);
    while (true) {
      fill(out, base);
      if (out.position() == 0) {
        return;
      }
      out.flip();
      int n = channel.write(out);
      out.compact();
      if (n == 0) {
        return;
      }
    }
  }

  /** The socket takes more. On the loop's thread. */
  void writable() throws IOException {
    synchronized (lock()) {
      pump();
      SelectionKey k = key;
      if (isQueueEmpty() && out.position() == 0 && k != null) {
        int unused = k.interestOpsAnd(~SelectionKey.OP_WRITE);
      }
    }
  }

  @Override
  boolean isFlushed() {
    synchronized (lock()) {
      return ended || (isQueueEmpty() && out.position() == 0);
    }
  }

  // ---- receiving ----

  /** Reads what is there. On the loop's thread. */
  void readable() throws IOException {
    long base = Memory.addressOf(in);
    for (int i = 0; i < 16; i++) {
      int n = channel.read(in);
      if (n < 0) {
        end(saidGoodbye() ? null : new IOException("the other end closed it"));
        return;
      }
      if (n == 0) {
        return;
      }
      in.flip();
      take(in, base);
      in.clear();
    }
  }

  // ---- the end ----

  /** Ends the connection; null means in good order. Only the first call counts. */
  void end(@Nullable Throwable cause) {
    synchronized (lock()) {
      if (ended) {
        return;
      }
      ended = true;
      abandonQueue();
    }
    opening.end();
    try {
      channel.close();
    } catch (IOException e) {
      // Nothing is left to be done with the socket; its end is told below.
      cause = cause == null ? e : cause;
    }
    listener.ended(this, saidGoodbye() ? null : cause);
  }
}
