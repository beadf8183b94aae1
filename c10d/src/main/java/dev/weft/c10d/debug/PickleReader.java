package dev.weft.c10d.debug;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads a Python pickle of plain values, of any protocol from 2. It knows no instruction that names
 * a class or calls anything: such a pickle is refused, so an untrusted file can do no harm. Used
 * once.
 */
final class PickleReader {
  private static final Object MARK = new Object();

  private static final int MAX_DEPTH = 64;
  private static final int MAX_VALUES = 50_000_000;

  private final ByteBuffer in;
  private final List<@Nullable Object> stack = new ArrayList<>();
  private final Map<Integer, @Nullable Object> memo = new HashMap<>();
  private int values;

  private PickleReader(byte[] pickle) {
    this.in = ByteBuffer.wrap(pickle).order(ByteOrder.LITTLE_ENDIAN);
  }

  /**
   * The value: null, booleans, longs, doubles, text, lists and maps; tuples become lists.
   *
   * @throws IOException if it is cut short, malformed, or holds more than plain values
   */
  static @Nullable Object read(byte[] pickle) throws IOException {
    PickleReader r = new PickleReader(pickle);
    try {
      while (true) {
        int op = r.in.get() & 0xff;
        if (op == '.') {
          Object value = r.pop();
          r.checkSize(value, 0);
          return value;
        }
        r.step(op);
      }
    } catch (BufferUnderflowException | IndexOutOfBoundsException | IllegalArgumentException e) {
      throw new IOException("the pickle is cut short or malformed at byte " + r.in.position(), e);
    }
  }

  /** Containers may be named twice, or hold themselves: what they stand for must be finite. */
  private void checkSize(@Nullable Object value, int depth) throws IOException {
    values++;
    if (depth > MAX_DEPTH || values > MAX_VALUES) {
      throw new IOException("the pickle is too deep or too large, or holds itself");
    }
    if (value instanceof List<?> list) {
      for (Object item : list) {
        checkSize(item, depth + 1);
      }
    } else if (value instanceof Map<?, ?> map) {
      for (Object item : map.values()) {
        checkSize(item, depth + 1);
      }
    }
  }

  private void step(int op) throws IOException {
    switch (op) {
      case 0x80 -> skip(1);
      case 0x95 -> skip(8);
      case 'N' -> stack.add(null);
      case 0x88 -> stack.add(true);
      case 0x89 -> stack.add(false);
      case 'J' -> stack.add((long) in.getInt());
      case 'K' -> stack.add((long) (in.get() & 0xff));
      case 'M' -> stack.add((long) (in.getShort() & 0xffff));
      case 0x8a -> stack.add(longOf(in.get() & 0xff));
      case 'G' -> stack.add(Double.longBitsToDouble(Long.reverseBytes(in.getLong())));
      case 'X' -> stack.add(text(in.getInt()));
      case 0x8c -> stack.add(text(in.get() & 0xff));
      case 0x8d -> stack.add(text(Math.toIntExact(in.getLong())));
      case '(' -> stack.add(MARK);
      default -> container(op);
    }
  }

  private void container(int op) throws IOException {
    switch (op) {
      case '}' -> stack.add(new LinkedHashMap<@Nullable Object, @Nullable Object>());
      case ']', ')' -> stack.add(new ArrayList<@Nullable Object>());
      case 's' -> {
        Object value = pop();
        Object key = pop();
        map(top()).put(key, value);
      }
      case 'u' -> {
        List<@Nullable Object> items = toMark();
        for (int i = 0; i < items.size(); i += 2) {
          map(top()).put(items.get(i), items.get(i + 1));
        }
      }
      case 'a' -> {
        Object value = pop();
        list(top()).add(value);
      }
      case 'e' -> {
        List<@Nullable Object> items = toMark();
        list(top()).addAll(items);
      }
      case 't', 'l' -> stack.add(toMark());
      case 0x85, 0x86, 0x87 -> {
        int from = stack.size() - (op - 0x84);
        List<@Nullable Object> items = new ArrayList<>(stack.subList(from, stack.size()));
        stack.subList(from, stack.size()).clear();
        stack.add(items);
      }
      default -> memory(op);
    }
  }

  private void memory(int op) throws IOException {
    switch (op) {
      case 'q' -> memo.put(in.get() & 0xff, top());
      case 'r' -> memo.put(in.getInt(), top());
      case 0x94 -> memo.put(memo.size(), top());
      case 'h' -> stack.add(memo.get(in.get() & 0xff));
      case 'j' -> stack.add(memo.get(in.getInt()));
      default ->
          throw new IOException(
              String.format(
                  "the pickle has instruction 0x%02x at byte %d; expected plain values only, and"
                      + " nothing that makes an object of a class",
                  op, in.position() - 1));
    }
  }

  private void skip(int n) {
    in.position(in.position() + n);
  }

  private long longOf(int length) {
    if (length > 8) {
      throw new IllegalArgumentException("an integer of " + length + " bytes");
    }
    long value = 0;
    for (int i = 0; i < length; i++) {
      byte b = in.get();
      value |= i == length - 1 ? (long) b << (8 * i) : (b & 0xffL) << (8 * i);
    }
    return value;
  }

  private String text(int length) {
    if (length < 0 || length > in.remaining()) {
      throw new IllegalArgumentException("a text of " + length + " bytes");
    }
    byte[] utf8 = new byte[length];
    in.get(utf8);
    return new String(utf8, UTF_8);
  }

  private @Nullable Object pop() {
    return stack.remove(stack.size() - 1);
  }

  private @Nullable Object top() {
    return stack.get(stack.size() - 1);
  }

  private List<@Nullable Object> toMark() {
    int at = stack.lastIndexOf(MARK);
    List<@Nullable Object> items = new ArrayList<>(stack.subList(at + 1, stack.size()));
    stack.subList(at, stack.size()).clear();
    return items;
  }

  @SuppressWarnings("unchecked") // made here, of these types
  private static Map<@Nullable Object, @Nullable Object> map(@Nullable Object value) {
    if (value instanceof LinkedHashMap<?, ?> map) {
      return (Map<@Nullable Object, @Nullable Object>) map;
    }
    throw new IllegalArgumentException("items of something that is no map");
  }

  @SuppressWarnings("unchecked") // made here, of these types
  private static List<@Nullable Object> list(@Nullable Object value) {
    if (value instanceof ArrayList<?> list) {
      return (List<@Nullable Object>) list;
    }
    throw new IllegalArgumentException("items of something that is no list");
  }
}
