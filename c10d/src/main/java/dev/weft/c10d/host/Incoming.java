package dev.weft.c10d.host;

import dev.weft.c10d.DistributedException;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.Memory;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/** Takes a stream of bytes apart into frames. Used by the thread that reads the connection. */
final class Incoming {
  /** What is done with a whole frame; it takes over the payload. */
  interface Sink {
    void frame(byte type, ByteBuffer header, @Nullable Payload payload);
  }

  private final Sink sink;
  private final boolean checked;
  private final ByteBuffer prefix = ByteBuffer.allocate(Frame.PREFIX);
  private final ByteBuffer tail = ByteBuffer.allocate(5);
  private final CRC32C checksum = new CRC32C();
  private byte type;
  private @Nullable ByteBuffer header;
  private long payloadBytes;
  private long payloadAddress;
  private long arrived;

  /**
   * Takes frames apart.
   *
   * @param checked whether they carry checksums
   */
  Incoming(Sink sink, boolean checked) {
    this.sink = sink;
    this.checked = checked;
  }

  /** Takes all bytes of a direct buffer, whose first byte is at {@code base}. */
  void take(ByteBuffer from, long base) {
    while (from.hasRemaining()) {
      ByteBuffer h = header;
      if (h == null) {
        move(from, prefix);
        if (prefix.hasRemaining()) {
          return;
        }
        h = begin();
      }
      if (h.hasRemaining()) {
        move(from, h);
        if (h.hasRemaining()) {
          return;
        }
        if (checked) {
          checksum.update(h.duplicate().flip());
        }
      }
      int n = (int) Math.min(payloadBytes - arrived, from.remaining());
      if (n > 0) {
        Memory.copy(base + from.position(), payloadAddress + arrived, n);
        if (checked) {
          checksum.update(from.slice(from.position(), n));
        }
        from.position(from.position() + n);
        arrived += n;
      }
      if (arrived < payloadBytes) {
        return;
      }
      move(from, tail);
      if (tail.hasRemaining()) {
        return;
      }
      finish(h);
    }
  }

  private ByteBuffer begin() {
    prefix.flip();
    type = prefix.get();
    int length = prefix.getInt();
    payloadBytes = prefix.getLong();
    checkSum(Frame.checksum(prefix.array()), prefix.getInt());
    prefix.clear();
    if (length < 0 || length > Frame.MAX_HEADER || payloadBytes < 0) {
      throw new DistributedException(
          "a frame of type "
              + type
              + " claims a header of "
              + length
              + " and a payload of "
              + payloadBytes
              + " bytes");
    }
    ByteBuffer h = ByteBuffer.allocate(length);
    header = h;
    checksum.reset();
    tail.clear().limit(payloadBytes > 0 ? 5 : 4);
    arrived = 0;
    payloadAddress = payloadBytes == 0 ? 0 : HostMemory.allocate(payloadBytes);
    return h;
  }

  private void finish(ByteBuffer h) {
    tail.flip();
    boolean whole = true;
    if (payloadBytes > 0) {
      byte said = tail.get();
      checksum.update(said);
      whole = said == 0;
    }
    if (checked) {
      checkSum((int) checksum.getValue(), tail.getInt());
    }
    header = null;
    Payload payload =
        type == Frame.PIECE || type == Frame.PARCEL
            ? new Payload.Owned(payloadAddress, payloadBytes)
            : null;
    payloadAddress = 0;
    if (whole) {
      sink.frame(type, h.flip(), payload);
    } else if (payload != null) {
      payload.release();
    }
  }

  private static void checkSum(int computed, int told) {
    if (computed != told) {
      throw new DistributedException(
          "what came over the connection is damaged: its checksum is %08x, and %08x was sent"
              .formatted(computed, told));
    }
  }

  private static void move(ByteBuffer from, ByteBuffer to) {
    int n = Math.min(from.remaining(), to.remaining());
    if (n > 0) {
      to.put(from.slice(from.position(), n));
      from.position(from.position() + n);
    }
  }

  /** Lets go of a half-arrived payload. */
  void close() {
    if (payloadAddress != 0) {
      HostMemory.free(payloadAddress, payloadBytes);
      payloadAddress = 0;
    }
  }
}
