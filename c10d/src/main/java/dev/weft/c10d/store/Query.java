package dev.weft.c10d.store;

import static dev.weft.c10d.store.Query.Field.KEY;
import static dev.weft.c10d.store.Query.Field.NUMBER;
import static dev.weft.c10d.store.Query.Field.VALUE;
import static dev.weft.c10d.store.Query.Field.WORD;

import com.google.common.collect.ImmutableList;

/**
 * The requests of PyTorch's TCPStore protocol, in the order of their numbers on the wire, with the
 * fields that follow the query byte. All integers are little-endian; keys and values are a length
 * of 64 bits and that many bytes.
 */
enum Query {
  VALIDATE(0, false, WORD),
  SET(1, false, KEY, VALUE),
  COMPARE_SET(2, false, KEY, VALUE, VALUE),
  GET(3, false, KEY),
  ADD(4, false, KEY, NUMBER),
  CHECK(5, true, KEY),
  WAIT(6, true, KEY),
  GET_NUM_KEYS(7, false),
  DELETE_KEY(8, false, KEY),
  APPEND(9, false, KEY, VALUE),
  MULTI_GET(10, true, KEY),
  MULTI_SET(11, true, KEY, VALUE),
  CANCEL_WAIT(12, false),
  PING(13, false, WORD),
  QUEUE_PUSH(14, false, KEY, VALUE),
  QUEUE_POP(15, false, KEY),
  QUEUE_LEN(16, false, KEY),
  LIST_KEYS(17, false),
  BARRIER(18, false, KEY, NUMBER);

  /** What a request consists of. */
  enum Field {
    /** A name, at most {@link #MAX_KEY} bytes. */
    KEY,
    /** Opaque bytes, at most {@link #MAX_VALUE}. */
    VALUE,
    /** A signed integer of 64 bits. */
    NUMBER,
    /** An integer of 32 bits. */
    WORD
  }

  /** The four bytes that open a connection. */
  static final int MAGIC = 0x3C85F7CE;

  /** The most bytes of a key, with whatever the client puts in front of it. */
  static final int MAX_KEY = 8192;

  /** The most bytes of a value in one request. */
  static final int MAX_VALUE = 8 << 20;

  /** The most keys of one request. */
  static final int MAX_COUNT = 131_072;

  /** What the client puts in front of every key that a user names. */
  static final String USER_PREFIX = "/";

  /** The key, outside the users' name space, that counts the workers which joined. */
  static final String INIT_KEY = "init/";

  /** Answers to CHECK and WAIT; CANCEL_WAIT is answered with {@link #CANCELED}. */
  static final byte READY = 0;

  static final byte NOT_READY = 1;
  static final byte CANCELED = 1;

  private static final ImmutableList<Query> ALL = ImmutableList.copyOf(values());

  private final byte code;
  private final boolean repeated;
  private final ImmutableList<Field> fields;

  Query(int code, boolean repeated, Field... fields) {
    this.code = (byte) code;
    this.repeated = repeated;
    this.fields = ImmutableList.copyOf(fields);
  }

  /** Whether a count of 64 bits comes first and then that many groups of the fields. */
  boolean isRepeated() {
    return repeated;
  }

  ImmutableList<Field> fields() {
    return fields;
  }

  byte code() {
    return code;
  }

  /**
   * Finds the query of a byte.
   *
   * @throws ProtocolException if there is none
   */
  static Query of(int code) {
    if (code < 0 || code >= ALL.size()) {
      throw new ProtocolException("unknown query " + code + "; expected 0 to " + (ALL.size() - 1));
    }
    return ALL.get(code);
  }
}
