package dev.weft.c10d.host;

import dev.weft.tensor.memory.Memory;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * A frame on its way out. Guarded by its connection's lock. Its payload may be abandoned at any
 * time: the rest of the frame is then filler, and its last byte says so.
 */
final class Outgoing {
  private final ByteBuffer head;
  private final long bytes;
  private long address;
  private long written;
  private boolean abandoned;
  private boolean ended;
  private @Nullable Runnable onPayloadWritten;

  Outgoing(ByteBuffer head) {
    this(head, new Piece(0, 0), null);
  }

  Outgoing(ByteBuffer head, Piece payload, @Nullable Runnable onPayloadWritten) {
    this.head = head;
    this.address = payload.address();
    this.bytes = payload.bytes();
    this.ended = bytes == 0;
    this.onPayloadWritten = onPayloadWritten;
  }

  /** Puts as much as fits into a direct buffer, whose first byte is at {@code base}. */
  void fill(ByteBuffer into, long base) {
    int n = Math.min(head.remaining(), into.remaining());
    if (n > 0) {
      into.put(head.slice(head.position(), n));
      head.position(head.position() + n);
    }
    if (head.hasRemaining()) {
      return;
    }
    long m = Math.min(bytes - written, into.remaining());
    if (m > 0) {
      if (!abandoned) {
        Memory.copy(address + written, base + into.position(), m);
      }
      into.position(into.position() + (int) m);
      written += m;
      if (written == bytes) {
        payloadDone();
      }
    }
    if (written == bytes && !ended && into.hasRemaining()) {
      into.put((byte) (abandoned ? 1 : 0));
      ended = true;
    }
    if (bytes == 0) {
      payloadDone();
    }
  }

  boolean isWritten() {
    return !head.hasRemaining() && written == bytes && ended;
  }

  /** Gives the payload's memory back at once. */
  void abandon() {
    if (written < bytes) {
      abandoned = true;
    }
    payloadDone();
  }

  private void payloadDone() {
    Runnable then = onPayloadWritten;
    onPayloadWritten = null;
    address = abandoned ? 0 : address;
    if (then != null) {
      then.run();
    }
  }
}
