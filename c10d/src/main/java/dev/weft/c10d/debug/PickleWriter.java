package dev.weft.c10d.debug;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Writes plain values as a Python pickle, protocol 2. Used once. */
final class PickleWriter {
  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
  private final DataOutputStream out = new DataOutputStream(bytes);

  private PickleWriter() {}

  /**
   * The pickle of null, booleans, whole and floating-point numbers, text, lists, tuples and maps.
   *
   * @throws IllegalArgumentException for any other value
   */
  static byte[] pickle(@Nullable Object value) throws IOException {
    PickleWriter w = new PickleWriter();
    w.out.writeByte(0x80);
    w.out.writeByte(2);
    w.write(value);
    w.out.writeByte('.');
    w.out.flush();
    return w.bytes.toByteArray();
  }

  private void write(@Nullable Object value) throws IOException {
    if (value == null) {
      out.writeByte('N');
    } else if (value instanceof Boolean b) {
      out.writeByte(b ? 0x88 : 0x89);
    } else if (value instanceof Long || value instanceof Integer) {
      integer(((Number) value).longValue());
    } else if (value instanceof Double d) {
      out.writeByte('G');
      out.writeDouble(d);
    } else if (value instanceof String s) {
      text(s);
    } else if (value instanceof Tuple t) {
      out.writeByte('(');
      for (Object item : t) {
        write(item);
      }
      out.writeByte('t');
    } else if (value instanceof List<?> list) {
      out.writeByte(']');
      out.writeByte('(');
      for (Object item : list) {
        write(item);
      }
      out.writeByte('e');
    } else if (value instanceof Map<?, ?> map) {
      out.writeByte('}');
      out.writeByte('(');
      for (Map.Entry<?, ?> e : map.entrySet()) {
        write(e.getKey());
        write(e.getValue());
      }
      out.writeByte('u');
    } else {
      throw new IllegalArgumentException(
          "a " + value.getClass().getName() + " cannot be pickled; expected a plain value");
    }
  }

  private void integer(long value) throws IOException {
    if (value == (int) value) {
      out.writeByte('J');
      out.writeInt(Integer.reverseBytes((int) value));
    } else {
      out.writeByte(0x8a);
      out.writeByte(8);
      out.writeLong(Long.reverseBytes(value));
    }
  }

  private void text(String s) throws IOException {
    byte[] utf8 = s.getBytes(UTF_8);
    out.writeByte('X');
    out.writeInt(Integer.reverseBytes(utf8.length));
    out.write(utf8);
  }
}
