package dev.weft.c10d.store;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The keys and queues of one store, with the semantics that all stores share. Not thread-safe: its
 * owner guards it. Values that are handed over belong to the table, those that come out must not be
 * changed.
 */
final class Table {
  /** The most bytes that a value may grow to by appending. */
  static final int MAX_GROWN_VALUE = 1 << 30;

  private final Map<String, Value> values = new HashMap<>();
  private final Map<String, ArrayDeque<byte[]>> queues = new HashMap<>();
  private final Journal journal;

  /** Hears of every change that was made. */
  interface Journal {
    /** Ignores everything. */
    Journal NONE = (change, key, value) -> {};

    void record(Change change, String key, byte[] value);
  }

  /** The kinds of changes; additions and swaps are recorded as the setting of their result. */
  enum Change {
    SET(0),
    APPEND(1),
    DELETE(2),
    PUSH(3),
    POP(4);

    private final int code;

    Change(int code) {
      this.code = code;
    }

    /** The number that stands for it in a file. */
    int code() {
      return code;
    }
  }

  private static final byte[] NOTHING = {};

  Table(Journal journal) {
    this.journal = journal;
  }

  /** Makes a change that another table recorded. */
  void apply(Change change, String key, byte[] value) {
    switch (change) {
      case SET -> set(key, value);
      case APPEND -> append(key, value);
      case DELETE -> delete(key);
      case PUSH -> push(key, value);
      case POP -> pop(key);
    }
  }

  /**
   * A value that can grow at its end. Bytes before its length never change, so a reader that
   * remembers the array and the length may go on reading while more is appended.
   */
  static final class Value {
    private byte[] array;
    private int length;

    Value(byte[] array) {
      this.array = array;
      this.length = array.length;
    }

    /** The backing array; only the first {@link #length()} bytes count. */
    byte[] array() {
      return array;
    }

    int length() {
      return length;
    }

    byte[] copy() {
      return Arrays.copyOf(array, length);
    }

    boolean contains(byte[] bytes) {
      return Arrays.equals(array, 0, length, bytes, 0, bytes.length);
    }

    void append(byte[] more) {
      if (more.length > MAX_GROWN_VALUE - length) {
        throw new IllegalStateException(
            "appending %d bytes to a value of %d bytes passes the limit of %d"
                .formatted(more.length, length, MAX_GROWN_VALUE));
      }
      int grown = length + more.length;
      if (grown > array.length) {
        array = Arrays.copyOf(array, (int) Math.min(MAX_GROWN_VALUE, Math.max(grown, 2L * length)));
      }
      System.arraycopy(more, 0, array, length, more.length);
      length = grown;
    }
  }

  void set(String key, byte[] value) {
    values.put(key, new Value(value));
    journal.record(Change.SET, key, value);
  }

  @Nullable Value get(String key) {
    return values.get(key);
  }

  void append(String key, byte[] more) {
    Value present = values.get(key);
    if (present == null) {
      set(key, more);
    } else {
      present.append(more);
      journal.record(Change.APPEND, key, more);
    }
  }

  /**
   * Adds to a counter.
   *
   * @throws NumberFormatException if the stored text does not begin with an integer; nothing has
   *     changed then
   */
  long add(String key, long delta) {
    Value present = values.get(key);
    long sum = delta + (present == null ? 0 : parseNumber(present));
    set(key, Long.toString(sum).getBytes(US_ASCII));
    return sum;
  }

  /** Swaps a value as {@link Store#compareSet} says; returns what is to be answered. */
  Value compareSet(String key, byte[] expected, byte[] desired) {
    Value present = values.get(key);
    if (present == null && expected.length > 0) {
      return new Value(expected);
    }
    if (present != null && !present.contains(expected)) {
      return present;
    }
    set(key, desired);
    return new Value(desired);
  }

  boolean delete(String key) {
    if (values.remove(key) == null) {
      return false;
    }
    journal.record(Change.DELETE, key, NOTHING);
    return true;
  }

  /** Whether the key, or a queue of that name that is not empty, is there. */
  boolean has(String key) {
    return values.containsKey(key) || queues.containsKey(key);
  }

  int size() {
    return values.size();
  }

  Collection<String> keys() {
    return Collections.unmodifiableSet(values.keySet());
  }

  void push(String key, byte[] element) {
    queues.computeIfAbsent(key, k -> new ArrayDeque<>()).add(element);
    journal.record(Change.PUSH, key, element);
  }

  byte @Nullable [] pop(String key) {
    ArrayDeque<byte[]> queue = queues.get(key);
    if (queue == null) {
      return null;
    }
    byte[] first = queue.remove();
    if (queue.isEmpty()) {
      queues.remove(key);
    }
    journal.record(Change.POP, key, NOTHING);
    return first;
  }

  int queueLength(String key) {
    ArrayDeque<byte[]> queue = queues.get(key);
    return queue == null ? 0 : queue.size();
  }

  /**
   * Reads a number the way C's strtoll does: leading blanks, a sign, digits, and whatever follows
   * is ignored.
   */
  static long parseNumber(Value text) {
    byte[] b = text.array();
    int at = 0;
    while (at < text.length() && (b[at] == ' ' || (b[at] >= '\t' && b[at] <= '\r'))) {
      at++;
    }
    int start = at;
    if (at < text.length() && (b[at] == '+' || b[at] == '-')) {
      at++;
    }
    while (at < text.length() && b[at] >= '0' && b[at] <= '9') {
      at++;
    }
    return Long.parseLong(new String(b, start, at - start, US_ASCII));
  }
}
