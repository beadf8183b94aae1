package dev.weft.c10d.store;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.ByteToMessageDecoder;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Cuts the bytes of a client into requests. It takes each field as it becomes complete, so a
 * request of many fields is read once however it was segmented, and nothing is allocated for bytes
 * that are only announced. Pairs of a MULTI_SET go out one by one, as SETs.
 *
 * <p>The keys of other lists are collected, so their sum is bounded.
 */
final class RequestDecoder extends ByteToMessageDecoder {
  /** The most bytes of all keys in one request. */
  static final int MAX_KEY_LIST = 64 << 20;

  private static final int WORD_BYTES = 4;

  private static final int LONG_BYTES = 8;

  private @Nullable Query query;
  private int field;
  private int groupsLeft;
  private boolean counted;
  private boolean broken;
  private boolean paused;
  private final BooleanSupplier mayDecode;
  private @Nullable ChannelHandlerContext context;
  private int keyBytes;
  private List<String> keys = new ArrayList<>();
  private List<byte[]> values = new ArrayList<>();
  private long number;

  /**
   * Makes a decoder.
   *
   * @param mayDecode whether the client has taken its answers so far; otherwise nothing more is
   *     read until {@link #resume}
   */
  RequestDecoder(BooleanSupplier mayDecode) {
    this.mayDecode = mayDecode;
  }

  @Override
  public void handlerAdded(ChannelHandlerContext ctx) {
    context = ctx;
  }

  /** Goes on where it paused, if it did. */
  void resume() {
    var ctx = context;
    if (paused && ctx != null) {
      paused = false;
      // Not from here: this may be called while a request is being handled.
      ctx.executor().execute(() -> goOn(ctx));
    }
  }

  private void goOn(ChannelHandlerContext ctx) {
    try {
      channelRead(ctx, Unpooled.EMPTY_BUFFER);
      channelReadComplete(ctx);
    } catch (Exception e) {
      ctx.fireExceptionCaught(e);
    }
    if (!paused) {
      ctx.channel().config().setAutoRead(true);
    }
  }

  @Override
  protected void decode(ChannelHandlerContext ctx, ByteBuf in, List<Object> out) {
    if (!mayDecode.getAsBoolean()) {
      paused = true;
      ctx.channel().config().setAutoRead(false);
      return;
    }
    boolean good = false;
    try {
      if (!broken) {
        decode(in, out);
      }
      good = !broken;
    } finally {
      if (!good) {
        broken = true;
        in.skipBytes(in.readableBytes()); // nothing behind an error has a meaning
      }
    }
  }

  private void decode(ByteBuf in, List<Object> out) {
    var current = query;
    if (current == null) {
      current = Query.of(in.readUnsignedByte());
      query = current;
      groupsLeft = 1;
      counted = !current.isRepeated();
    }
    if (!counted && !readCount(in)) {
      return;
    }
    while (groupsLeft > 0) {
      while (field < current.fields().size()) {
        if (!readField(current.fields().get(field), in)) {
          return;
        }
        field++;
      }
      field = 0;
      groupsLeft--;
      if (current == Query.MULTI_SET) {
        out.add(take(Query.SET));
      }
    }
    query = null;
    if (current != Query.MULTI_SET) {
      out.add(take(current));
    }
  }

  private Request take(Query kind) {
    var request = new Request(kind, keys, values, number);
    keys = new ArrayList<>();
    values = new ArrayList<>();
    number = 0;
    keyBytes = 0;
    return request;
  }

  private boolean readCount(ByteBuf in) {
    if (in.readableBytes() < LONG_BYTES) {
      return false;
    }
    long count = in.readLongLE();
    if (count < 0 || count > Query.MAX_COUNT) {
      throw new ProtocolException(
          query + " of " + count + " keys; expected at most " + Query.MAX_COUNT);
    }
    groupsLeft = (int) count;
    counted = true;
    return true;
  }

  private boolean readField(Query.Field kind, ByteBuf in) {
    switch (kind) {
      case WORD -> {
        if (in.readableBytes() < WORD_BYTES) {
          return false;
        }
        number = in.readUnsignedIntLE();
      }
      case NUMBER -> {
        if (in.readableBytes() < LONG_BYTES) {
          return false;
        }
        number = in.readLongLE();
      }
      case KEY -> {
        byte[] key = readBytes(in, Query.MAX_KEY, "a key");
        if (key == null) {
          return false;
        }
        keyBytes += key.length;
        if (keyBytes > MAX_KEY_LIST) {
          throw new ProtocolException(
              query + " with keys of more than " + MAX_KEY_LIST + " bytes together");
        }
        keys.add(new String(key, ISO_8859_1));
      }
      case VALUE -> {
        byte[] value = readBytes(in, Query.MAX_VALUE, "a value");
        if (value == null) {
          return false;
        }
        values.add(value);
      }
    }
    return true;
  }

  private byte @Nullable [] readBytes(ByteBuf in, int limit, String what) {
    if (in.readableBytes() < LONG_BYTES) {
      return null;
    }
    long length = in.getLongLE(in.readerIndex());
    if (length < 0 || length > limit) {
      throw new ProtocolException(
          "%s with %s of %d bytes; expected at most %d".formatted(query, what, length, limit));
    }
    if (in.readableBytes() - LONG_BYTES < length) {
      return null;
    }
    in.skipBytes(LONG_BYTES);
    byte[] bytes = new byte[(int) length];
    in.readBytes(bytes);
    return bytes;
  }

  /**
   * A request.
   *
   * @param query what is asked
   * @param keys the keys, byte for byte as Latin-1
   * @param values the values
   * @param number the number or word
   */
  record Request(Query query, List<String> keys, List<byte[]> values, long number) {
    String key() {
      return keys.get(0);
    }

    byte[] value() {
      return values.get(0);
    }
  }
}
