package dev.weft.c10d.host;

import dev.weft.c10d.DistributedException;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.Memory;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/** Takes a stream of bytes apart into frames. Used by the thread that reads the connection. */
final class Incoming {
  /** What is done with a whole frame; it takes over the payload. */
  interface Sink {
    void frame(byte type, ByteBuffer header, @Nullable Payload payload);
  }

  private final Sink sink;
  private final ByteBuffer prefix = ByteBuffer.allocate(Frame.PREFIX);
  private byte type;
  private @Nullable ByteBuffer header;
  private long payloadBytes;
  private long payloadAddress;
  private long arrived;

  Incoming(Sink sink) {
    this.sink = sink;
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
      move(from, h);
      if (h.hasRemaining()) {
        return;
      }
      if (payloadBytes > 0) {
        int n = (int) Math.min(payloadBytes - arrived, from.remaining());
        if (n > 0) {
          Memory.copy(base + from.position(), payloadAddress + arrived, n);
          from.position(from.position() + n);
          arrived += n;
        }
        if (arrived < payloadBytes || !from.hasRemaining()) {
          return;
        }
        finish(h, from.get() == 0);
      } else {
        finish(h, true);
      }
    }
  }

  private ByteBuffer begin() {
    prefix.flip();
    type = prefix.get();
    int length = prefix.getInt();
    payloadBytes = prefix.getLong();
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
    arrived = 0;
    payloadAddress = payloadBytes == 0 ? 0 : HostMemory.allocate(payloadBytes);
    return h;
  }

  private void finish(ByteBuffer h, boolean whole) {
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
