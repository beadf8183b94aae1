package dev.weft.c10d.store;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;

/**
 * The bytes of one or more requests, built field by field. Sizes are checked here, before anything
 * is sent, since a server answers what it does not like by closing the connection.
 */
final class WireRequest {
  private ByteBuffer buffer = ByteBuffer.allocate(256).order(ByteOrder.LITTLE_ENDIAN);

  static WireRequest of(Query query) {
    return new WireRequest().query(query);
  }

  WireRequest query(Query query) {
    room(1).put(query.code());
    return this;
  }

  /** Adds a key that a user named. */
  WireRequest key(String key) {
    return rawKey(Query.USER_PREFIX + key);
  }

  WireRequest rawKey(String key) {
    byte[] bytes = key.getBytes(UTF_8);
    if (bytes.length > Query.MAX_KEY) {
      throw new IllegalArgumentException(
          "key '%s' has %d bytes on the wire; expected at most %d"
              .formatted(Texts.brief(key), bytes.length, Query.MAX_KEY));
    }
    return bytes(bytes);
  }

  WireRequest keys(List<String> keys) {
    count(keys.size());
    keys.forEach(this::key);
    return this;
  }

  /** Adds the value of a key. */
  WireRequest value(String key, byte[] value) {
    if (value.length > Query.MAX_VALUE) {
      throw new IllegalArgumentException(
          "the value for key '%s' has %d bytes; expected at most %d"
              .formatted(Texts.brief(key), value.length, Query.MAX_VALUE));
    }
    return bytes(value);
  }

  WireRequest count(int count) {
    if (count > Query.MAX_COUNT) {
      throw new IllegalArgumentException(
          "a call with %d keys; expected at most %d".formatted(count, Query.MAX_COUNT));
    }
    return number(count);
  }

  WireRequest number(long number) {
    room(Long.BYTES).putLong(number);
    return this;
  }

  WireRequest word(int word) {
    room(Integer.BYTES).putInt(word);
    return this;
  }

  /** Adds a byte and others behind it as they are. */
  WireRequest raw(int first, byte[] bytes) {
    room(1).put((byte) first);
    return raw(bytes);
  }

  /** Adds bytes as they are. */
  WireRequest raw(byte[] bytes) {
    room(bytes.length).put(bytes);
    return this;
  }

  private WireRequest bytes(byte[] bytes) {
    number(bytes.length);
    room(bytes.length).put(bytes);
    return this;
  }

  private ByteBuffer room(int bytes) {
    if (buffer.remaining() < bytes) {
      long wanted = Math.max(2L * buffer.capacity(), (long) buffer.position() + bytes);
      if (buffer.position() + (long) bytes > Integer.MAX_VALUE - 8) {
        throw new IllegalArgumentException("a call with 2 GiB of keys and values; expected less");
      }
      byte[] grown = Arrays.copyOf(buffer.array(), (int) Math.min(wanted, Integer.MAX_VALUE - 8));
      buffer = ByteBuffer.wrap(grown).order(ByteOrder.LITTLE_ENDIAN).position(buffer.position());
    }
    return buffer;
  }

  /** The bytes so far, to be read once. */
  ByteBuffer finish() {
    return buffer.flip();
  }
}
