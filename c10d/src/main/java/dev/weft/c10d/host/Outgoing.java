package dev.weft.c10d.host;

import dev.weft.tensor.memory.Memory;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * A frame on its way out. Guarded by its connection's lock. Its payload may be abandoned at any
 * time: the rest of the payload is then filler, and the byte behind it says so. Where nothing can
 * damage the bytes, zero stands for the checksum.
 */
final class Outgoing {
  private final ByteBuffer head;
  private final long bytes;
  private long address;
  private long written;
  private boolean abandoned;
  private final @Nullable CRC32C checksum;
  private @Nullable ByteBuffer tail;
  private @Nullable Runnable onPayloadWritten;

  Outgoing(ByteBuffer head, Piece payload, boolean checked, @Nullable Runnable onPayloadWritten) {
    this.head = head;
    this.address = payload.address();
    this.bytes = payload.bytes();
    this.checksum = checked ? new CRC32C() : null;
    if (checksum != null) {
      checksum.update(head.slice(Frame.PREFIX, head.limit() - Frame.PREFIX));
    }
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
    int m = (int) Math.min(bytes - written, into.remaining());
    if (m > 0) {
      int at = into.position();
      if (!abandoned) {
        Memory.copy(address + written, base + at, m);
      }
      if (checksum != null) {
        checksum.update(into.slice(at, m));
      }
      into.position(at + m);
      written += m;
    }
    if (written == bytes) {
      payloadDone();
      end(into);
    }
  }

  private void end(ByteBuffer into) {
    ByteBuffer t = tail;
    if (t == null) {
      t = ByteBuffer.allocate(5);
      if (bytes > 0) {
        byte whole = (byte) (abandoned ? 1 : 0);
        if (checksum != null) {
          checksum.update(whole);
        }
        t.put(whole);
      }
      t.putInt(checksum == null ? 0 : (int) checksum.getValue()).flip();
      tail = t;
    }
    int n = Math.min(t.remaining(), into.remaining());
    into.put(t.slice(t.position(), n));
    t.position(t.position() + n);
  }

  boolean isWritten() {
    ByteBuffer t = tail;
    return t != null && !t.hasRemaining();
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
