package dev.weft.c10d.host;

import dev.weft.c10d.DistributedException;
import dev.weft.c10d.MismatchException;
import dev.weft.tensor.DType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * The way to one rank in another process: a stream of frames each way. How the bytes move is the
 * subclass's. Thread-safe.
 */
abstract class Connection implements Link, Incoming.Sink {
  private static final Piece NOTHING = new Piece(0, 0);

  private final int peer;
  private final Mailbox mailbox;
  private final boolean checked;
  private final Incoming incoming;
  private final ArrayDeque<Outgoing> queue = new ArrayDeque<>();
  private final Map<Long, Parcel.Outcome> sent = new ConcurrentHashMap<>();
  private final Map<Long, Payload.Owned> received = new ConcurrentHashMap<>();
  private final AtomicLong numbers = new AtomicLong();
  private volatile boolean goodbye;

  /**
   * A connection.
   *
   * @param checked whether frames carry checksums
   */
  Connection(int peer, Mailbox mailbox, boolean checked) {
    this.peer = peer;
    this.mailbox = mailbox;
    this.checked = checked;
    this.incoming = new Incoming(this, checked);
  }

  final int peer() {
    return peer;
  }

  /** Queues a frame, or abandons it where the connection has ended; never waits. */
  abstract void enqueue(Outgoing outgoing);

  /** True when all that was queued is on its way. */
  abstract boolean isFlushed();

  // ---- sending ----

  /** A frame without a payload. */
  final Outgoing outgoing(ByteBuffer head) {
    return new Outgoing(head, NOTHING, checked, null);
  }

  @Override
  public void send(Key key, int source, @Nullable Signature signature, byte @Nullable [] inline) {
    enqueue(outgoing(Frame.opening(key, source, signature, inline)));
  }

  @Override
  public void lend(Key key, int source, long address, long bytes, Loans loans) {
    Outgoing[] made = new Outgoing[1];
    Runnable back = loans.lendOut(() -> abandon(Objects.requireNonNull(made[0])));
    made[0] =
        new Outgoing(Frame.piece(key, source, bytes), new Piece(address, bytes), checked, back);
    enqueue(made[0]);
  }

  @Override
  public void give(Key key, int source, long address, long bytes) {
    Payload given = new Payload.Owned(address, bytes);
    enqueue(
        new Outgoing(
            Frame.piece(key, source, bytes), new Piece(address, bytes), checked, given::release));
  }

  @Override
  public void wake() {
    enqueue(outgoing(Frame.about(Frame.WAKE, 0)));
  }

  @Override
  public Posting prepare(Letter letter) {
    long number = numbers.incrementAndGet();
    Outgoing outgoing = new Outgoing(Frame.parcel(number, letter), letter.piece(), checked, null);
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
        enqueue(outgoing(Frame.about(Frame.WITHDRAWN, number)));
        return true;
      }
    };
  }

  private void abandon(Outgoing outgoing) {
    synchronized (lock()) {
      outgoing.abandon();
    }
  }

  final void sayGoodbye() {
    enqueue(outgoing(Frame.goodbye()));
  }

  /** Guards what is queued. */
  final Object lock() {
    return queue;
  }

  /** Adds a frame; true when it is the only one. Under the lock. */
  final boolean add(Outgoing outgoing) {
    queue.add(outgoing);
    return queue.size() == 1;
  }

  /** True when nothing is queued. Under the lock. */
  final boolean isQueueEmpty() {
    return queue.isEmpty();
  }

  /**
   * Puts queued bytes into a direct buffer, whose first byte is at {@code base}, until it is full
   * or the queue empty. Under the lock.
   */
  final void fill(ByteBuffer out, long base) {
    while (out.hasRemaining() && !queue.isEmpty()) {
      Outgoing first = queue.getFirst();
      first.fill(out, base);
      if (first.isWritten()) {
        Outgoing unused = queue.removeFirst();
      }
    }
  }

  /** Gives up what is queued. Under the lock. */
  final void abandonQueue() {
    queue.forEach(Outgoing::abandon);
    queue.clear();
  }

  // ---- receiving ----

  /** True when messages that this rank has sent wait for their receiver's answer. */
  final boolean awaitsAnswers() {
    return !sent.isEmpty();
  }

  /** True when the peer has left in good order. */
  final boolean saidGoodbye() {
    return goodbye;
  }

  /** Takes the bytes that came, on the one thread that reads. */
  final void take(ByteBuffer from, long base) {
    incoming.take(from, base);
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
      case Frame.WAKE -> mailbox.wakeAll();
      case Frame.GOODBYE -> goodbye = true;
      case Frame.RING_WANTED, Frame.RING_OFFER, Frame.RING_ANSWER, Frame.RING_CALL ->
          ringFrame(type, h);
      default -> throw new DistributedException("a frame has the unknown type " + type);
    }
  }

  /** What concerns the {@link RingConnection} beside this one. */
  void ringFrame(byte type, ByteBuffer header) {
    throw new DistributedException("a frame of type " + type + " came over the wrong connection");
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
      enqueue(outgoing(Frame.about(Frame.TAKEN, number)));
    }

    @Override
    public void refused(RuntimeException why) {
      received.remove(number);
      enqueue(
          outgoing(
              Frame.refused(
                  number, why instanceof MismatchException, String.valueOf(why.getMessage()))));
    }
  }

  /** Lets go of a half-arrived payload, after the last {@link #take}. */
  final void free() {
    incoming.close();
  }
}
