package dev.weft.c10d.host;

import dev.weft.c10d.DistributedException;
import dev.weft.c10d.MismatchException;
import dev.weft.tensor.DType;
import dev.weft.tensor.memory.Memory;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * The connection to one rank in another process. Senders write as much as the socket takes, the
 * loop's thread writes the rest and reads all that comes, so no rank waits for another to read.
 * Thread-safe.
 */
final class TcpConnection implements Link, Incoming.Sink {
  private static final int BUFFER = 1 << 17;

  /** Hears of the connection's end, once. */
  interface EndListener {
    /** A null cause means a good-bye. */
    void ended(TcpConnection connection, @Nullable Throwable cause);
  }

  private final int peer;
  private final SocketChannel channel;
  private final Mailbox mailbox;
  private final EndListener listener;
  private final Incoming incoming = new Incoming(this);
  private final ByteBuffer in = ByteBuffer.allocateDirect(BUFFER);
  private final ByteBuffer out = ByteBuffer.allocateDirect(BUFFER);
  private final ArrayDeque<Outgoing> queue = new ArrayDeque<>();
  private final Map<Long, Parcel.Outcome> sent = new ConcurrentHashMap<>();
  private final Map<Long, Payload.Owned> received = new ConcurrentHashMap<>();
  private final AtomicLong numbers = new AtomicLong();
  private @Nullable SelectionKey key;
  private boolean goodbye;
  private boolean ended;

  TcpConnection(int peer, SocketChannel channel, Mailbox mailbox, EndListener listener) {
    this.peer = peer;
    this.channel = channel;
    this.mailbox = mailbox;
    this.listener = listener;
  }

  int peer() {
    return peer;
  }

  SocketChannel channel() {
    return channel;
  }

  void registered(SelectionKey key) {
    synchronized (queue) {
      this.key = key;
    }
  }

  // ---- sending ----

  @Override
  public void send(Key key, int source, @Nullable Signature signature, byte @Nullable [] inline) {
    enqueue(new Outgoing(Frame.opening(key, source, signature, inline)));
  }

  @Override
  public void lend(Key key, int source, long address, long bytes, Loans loans) {
    Outgoing[] made = new Outgoing[1];
    Runnable back = loans.lendOut(() -> abandon(Objects.requireNonNull(made[0])));
    made[0] = new Outgoing(Frame.piece(key, source, bytes), new Piece(address, bytes), back);
    enqueue(made[0]);
  }

  @Override
  public Posting prepare(Letter letter) {
    long number = numbers.incrementAndGet();
    Outgoing outgoing = new Outgoing(Frame.parcel(number, letter), letter.piece(), null);
    return new Posting() {
      @Override
      public void post() {
        sent.put(number, letter.outcome());
        enqueue(outgoing);
      }

      @Override
      public boolean cancel() {
        if (sent.remove(number) == null) {
          return false;
        }
        abandon(outgoing);
        enqueue(new Outgoing(Frame.about(Frame.WITHDRAWN, number)));
        return true;
      }
    };
  }

  private void abandon(Outgoing outgoing) {
    synchronized (queue) {
      outgoing.abandon();
    }
  }

  private void enqueue(Outgoing outgoing) {
    try {
      synchronized (queue) {
        if (ended) {
          outgoing.abandon();
          return;
        }
        queue.add(outgoing);
        if (queue.size() == 1) {
          pump();
        }
        SelectionKey k = key;
        if ((!queue.isEmpty() || out.position() > 0) && k != null) {
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
      while (out.hasRemaining() && !queue.isEmpty()) {
        Outgoing first = queue.getFirst();
        first.fill(out, base);
        if (first.isWritten()) {
          Outgoing unused = queue.removeFirst();
        }
      }
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
    synchronized (queue) {
      pump();
      SelectionKey k = key;
      if (queue.isEmpty() && out.position() == 0 && k != null) {
        int unused = k.interestOpsAnd(~SelectionKey.OP_WRITE);
      }
    }
  }

  boolean isFlushed() {
    synchronized (queue) {
      return ended || (queue.isEmpty() && out.position() == 0);
    }
  }

  void sayGoodbye() {
    enqueue(new Outgoing(Frame.goodbye()));
  }

  // ---- receiving ----

  /** Reads what is there. On the loop's thread. */
  void readable() throws IOException {
    long base = Memory.addressOf(in);
    for (int i = 0; i < 16; i++) {
      int n = channel.read(in);
      if (n < 0) {
        end(goodbye ? null : new IOException("the other end closed it"));
        return;
      }
      if (n == 0) {
        return;
      }
      in.flip();
      incoming.take(in, base);
      in.clear();
    }
  }

  @Override
  public void frame(byte type, ByteBuffer h, @Nullable Payload payload) {
    switch (type) {
      case Frame.OPENING -> {
        Key k = Frame.readKey(h);
        int source = h.getInt();
        byte[] call = Frame.readBytes(h);
        h.mark();
        boolean hasInline = h.getInt() >= 0;
        byte[] inline = hasInline ? Frame.readBytes(h.reset()) : null;
        mailbox.deliver(
            k,
            new Message(
                source,
                call.length == 0 ? null : Frame.decode(call),
                inline == null ? null : new Payload.Inline(inline)));
      }
      case Frame.PIECE -> {
        Key k = Frame.readKey(h);
        mailbox.deliver(k, new Message(h.getInt(), null, payload));
      }
      case Frame.PARCEL -> parcel(h, (Payload.Owned) Objects.requireNonNull(payload));
      case Frame.TAKEN -> {
        Parcel.Outcome outcome = sent.remove(h.getLong());
        if (outcome != null) {
          outcome.taken();
        }
      }
      case Frame.REFUSED -> {
        Parcel.Outcome outcome = sent.remove(h.getLong());
        boolean mismatch = h.get() == 1;
        String reason = new String(Frame.readBytes(h), StandardCharsets.UTF_8);
        if (outcome != null) {
          outcome.refused(
              mismatch ? new MismatchException(reason) : new DistributedException(reason));
        }
      }
      case Frame.WITHDRAWN -> {
        Payload.Owned there = received.remove(h.getLong());
        if (there != null) {
          there.withdraw();
        }
      }
      case Frame.GOODBYE -> goodbye = true;
      default -> throw new DistributedException("a frame has the unknown type " + type);
    }
  }

  private void parcel(ByteBuffer h, Payload.Owned payload) {
    long number = h.getLong();
    long group = h.getLong();
    int source = h.getInt();
    int tag = h.getInt();
    DType dtype = Frame.readDType(h);
    long numel = h.getLong();
    if (numel * dtype.byteSize() != payload.bytes()) {
      payload.release();
      throw new DistributedException(
          "a message of " + numel + " elements of " + dtype + " has " + payload.bytes() + " bytes");
    }
    received.put(number, payload);
    mailbox
        .parcels()
        .deliver(new Parcel(group, source, tag, dtype, numel, payload, new Remote(number)));
  }

  /** The sender's end of a message that came over this connection. */
  private final class Remote implements Parcel.Outcome {
    private final long number;

    Remote(long number) {
      this.number = number;
    }

    @Override
    public void taken() {
      received.remove(number);
      enqueue(new Outgoing(Frame.about(Frame.TAKEN, number)));
    }

    @Override
    public void refused(RuntimeException why) {
      received.remove(number);
      enqueue(
          new Outgoing(
              Frame.refused(
                  number, why instanceof MismatchException, String.valueOf(why.getMessage()))));
    }
  }

  // ---- the end ----

  /** Ends the connection; null means in good order. Only the first call counts. */
  void end(@Nullable Throwable cause) {
    synchronized (queue) {
      if (ended) {
        return;
      }
      ended = true;
      queue.forEach(Outgoing::abandon);
      queue.clear();
    }
    try {
      channel.close();
    } catch (IOException e) {
      // Nothing is left to be done with the socket; its end is told below.
      cause = cause == null ? e : cause;
    }
    listener.ended(this, goodbye ? null : cause);
  }

  /** After the loop has stopped. */
  void free() {
    incoming.close();
  }
}
