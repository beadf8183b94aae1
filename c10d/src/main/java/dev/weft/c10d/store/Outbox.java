package dev.weft.c10d.store;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * The answers to one client, in order. They wait here, as references to the stored values, until
 * the socket takes them: a client that does not read costs no copies. Touched by the server's event
 * loop only.
 */
final class Outbox {
  /** How much is handed to the socket at a time; this is what gets copied out of the heap. */
  private static final int CHUNK = 256 << 10;

  /** Answers up to this size are put together. */
  private static final int SMALL = 4 << 10;

  /** Bytes to be sent, from {@code at} to {@code end}. */
  private static final class Part {
    final byte[] array;
    final int end;
    int at;

    Part(byte[] array, int end) {
      this.array = array;
      this.end = end;
    }
  }

  private final ChannelHandlerContext context;
  private final Runnable whenClear;
  private final Deque<Part> parts = new ArrayDeque<>();
  private ByteBuffer small = ByteBuffer.allocate(SMALL).order(ByteOrder.LITTLE_ENDIAN);
  private boolean sending;

  /**
   * Makes an empty one.
   *
   * @param whenClear runs when all has been handed over and the socket takes more
   */
  Outbox(ChannelHandlerContext context, Runnable whenClear) {
    this.context = context;
    this.whenClear = whenClear;
  }

  /** Whether nothing waits and the socket takes more. */
  boolean isClear() {
    return parts.isEmpty() && small.position() == 0 && context.channel().isWritable();
  }

  Outbox oneByte(byte value) {
    room(1).put(value);
    return this;
  }

  Outbox word(int value) {
    room(Integer.BYTES).putInt(value);
    return this;
  }

  Outbox number(long value) {
    room(Long.BYTES).putLong(value);
    return this;
  }

  /** Adds a length and that many bytes, which must not change any more. */
  Outbox bytes(byte[] array, int length) {
    number(length);
    if (length <= SMALL) {
      room(length).put(array, 0, length);
    } else {
      endSmall();
      parts.add(new Part(array, length));
    }
    return this;
  }

  /** Adds a key, which stands for its bytes as Latin-1. */
  Outbox key(String key) {
    return bytes(key.getBytes(ISO_8859_1), key.length());
  }

  private ByteBuffer room(int bytes) {
    if (small.remaining() < bytes) {
      endSmall();
    }
    return small;
  }

  private void endSmall() {
    if (small.position() > 0) {
      parts.add(new Part(small.array(), small.position()));
      small = ByteBuffer.allocate(SMALL).order(ByteOrder.LITTLE_ENDIAN);
    }
  }

  /**
   * Hands over as much as the socket takes. To be called when answers were added, and when it takes
   * more.
   */
  void send() {
    if (sending) {
      return; // a flush below tells of its progress: the loop goes on by itself
    }
    sending = true;
    try {
      do {
        handOver();
        context.flush();
      } while (!parts.isEmpty() && context.channel().isWritable());
    } finally {
      sending = false;
    }
    if (isClear()) {
      whenClear.run();
    }
  }

  private void handOver() {
    if (parts.isEmpty() && small.position() > 0) {
      byte[] answer = new byte[small.position()];
      small.flip().get(answer);
      small.clear();
      parts.add(new Part(answer, answer.length));
    } else {
      endSmall();
    }
    while (!parts.isEmpty() && context.channel().isWritable()) {
      Part part = parts.element();
      int length = Math.min(CHUNK, part.end - part.at);
      var unused =
          context.write(Unpooled.wrappedBuffer(part.array, part.at, length), context.voidPromise());
      part.at += length;
      if (part.at == part.end) {
        parts.remove();
      }
    }
  }
}
