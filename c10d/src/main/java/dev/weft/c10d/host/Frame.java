package dev.weft.c10d.host;

import dev.weft.c10d.DistributedException;
import dev.weft.tensor.DType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * The headers of what goes over a connection. A frame is a prefix (a type, the length of the
 * header, the length of the payload, and their checksum), the header, the payload, where there is a
 * payload a byte that says whether it is whole, and the checksum of all that follows the prefix.
 * Checksums are CRC-32C, numbers big-endian. Stateless; what comes in is checked.
 */
final class Frame {
  /** Type (1), header length (4), payload length (8), checksum of these (4). */
  static final int PREFIX = 17;

  static final int MAX_HEADER = 1 << 26;

  /** The opening of a collective: key, source, signature, inline data. */
  static final byte OPENING = 1;

  /** A piece of a collective: key, source; the payload is the piece. */
  static final byte PIECE = 2;

  /** A message from rank to rank; the payload is its data. */
  static final byte PARCEL = 3;

  /** A message was received. */
  static final byte TAKEN = 4;

  /** A message could not be received: its number, whether it does not fit, the reason. */
  static final byte REFUSED = 5;

  /** A message is taken back. */
  static final byte WITHDRAWN = 6;

  /** The sender leaves the world in good order. */
  static final byte GOODBYE = 7;

  /** The receiver is to look again at what it waits for. */
  static final byte WAKE = 8;

  /** The receiver is to offer a ring of shared memory. */
  static final byte RING_WANTED = 9;

  /** Where a ring is, or why there is none. */
  static final byte RING_OFFER = 10;

  /** Whether the ring that was offered can be used: nothing, or why not. */
  static final byte RING_ANSWER = 11;

  /** The receiver is to look at its ring. */
  static final byte RING_CALL = 12;

  private static final int KEY = 8 + 8 + 4 + 4;
  private static final byte NO_DTYPE = -1;

  /** A dtype goes over the wire as its position here. */
  private static final List<DType> DTYPES =
      List.of(
          DType.FLOAT64,
          DType.FLOAT32,
          DType.FLOAT16,
          DType.BFLOAT16,
          DType.INT64,
          DType.INT32,
          DType.INT16,
          DType.INT8,
          DType.UINT8,
          DType.BOOL);

  private Frame() {}

  static ByteBuffer start(byte type, int header, long payload) {
    ByteBuffer b = ByteBuffer.allocate(PREFIX + header);
    b.put(type).putInt(header).putLong(payload);
    return b.putInt(checksum(b.array()));
  }

  /** The checksum of a prefix. */
  static int checksum(byte[] prefix) {
    CRC32C crc = new CRC32C();
    crc.update(prefix, 0, PREFIX - 4);
    return (int) crc.getValue();
  }

  private static ByteBuffer putKey(ByteBuffer b, Key key, int source) {
    return b.putLong(key.group()).putLong(key.sequence()).putInt(key.phase()).putInt(source);
  }

  static ByteBuffer opening(
      Key key, int source, @Nullable Signature signature, byte @Nullable [] inline) {
    byte[] call = signature == null ? new byte[0] : encode(signature);
    int data = inline == null ? 0 : inline.length;
    ByteBuffer b = start(OPENING, KEY + 4 + call.length + 4 + data, 0);
    putKey(b, key, source).putInt(call.length).put(call).putInt(inline == null ? -1 : data);
    if (inline != null) {
      b.put(inline);
    }
    return b.flip();
  }

  static ByteBuffer piece(Key key, int source, long bytes) {
    return putKey(start(PIECE, KEY, bytes), key, source).flip();
  }

  static ByteBuffer parcel(long number, Link.Letter letter) {
    return start(PARCEL, 8 + 8 + 4 + 4 + 1 + 8, letter.piece().bytes())
        .putLong(number)
        .putLong(letter.group())
        .putInt(letter.source())
        .putInt(letter.tag())
        .put(code(letter.dtype()))
        .putLong(letter.numel())
        .flip();
  }

  static ByteBuffer about(byte type, long number) {
    return start(type, 8, 0).putLong(number).flip();
  }

  static ByteBuffer refused(long number, boolean mismatch, String reason) {
    byte[] text = reason.getBytes(StandardCharsets.UTF_8);
    return start(REFUSED, 8 + 1 + 4 + text.length, 0)
        .putLong(number)
        .put((byte) (mismatch ? 1 : 0))
        .putInt(text.length)
        .put(text)
        .flip();
  }

  static ByteBuffer text(byte type, String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    return start(type, 4 + bytes.length, 0).putInt(bytes.length).put(bytes).flip();
  }

  static ByteBuffer goodbye() {
    return start(GOODBYE, 0, 0).flip();
  }

  static Key readKey(ByteBuffer b) {
    return new Key(b.getLong(), b.getLong(), b.getInt());
  }

  static byte[] readBytes(ByteBuffer b) {
    int n = b.getInt();
    if (n < 0 || n > b.remaining()) {
      throw new DistributedException("a frame has a field of " + n + " bytes");
    }
    byte[] out = new byte[n];
    b.get(out);
    return out;
  }

  private static byte code(DType dtype) {
    return (byte) DTYPES.indexOf(dtype);
  }

  static DType readDType(ByteBuffer b) {
    int at = b.get();
    if (at < 0 || at >= DTYPES.size()) {
      throw new DistributedException("a frame names dtype " + at);
    }
    return DTYPES.get(at);
  }

  // ---- signatures ----

  static byte[] encode(Signature s) {
    byte[] operation = s.operation().getBytes(StandardCharsets.UTF_8);
    byte[] reduceOp = s.reduceOp().getBytes(StandardCharsets.UTF_8);
    int size =
        4
            + operation.length
            + 1
            + 4
            + reduceOp.length
            + 4
            + size(s.shape())
            + size(s.sent())
            + size(s.received());
    ByteBuffer b = ByteBuffer.allocate(size);
    DType dtype = s.dtype();
    b.putInt(operation.length).put(operation);
    b.put(dtype == null ? NO_DTYPE : code(dtype));
    b.putInt(reduceOp.length).put(reduceOp);
    b.putInt(s.root());
    put(b, s.shape());
    put(b, s.sent());
    put(b, s.received());
    return b.array();
  }

  static Signature decode(byte[] bytes) {
    ByteBuffer b = ByteBuffer.wrap(bytes);
    String operation = new String(readBytes(b), StandardCharsets.UTF_8);
    b.mark();
    DType dtype = null;
    if (b.get() != NO_DTYPE) {
      b.reset();
      dtype = readDType(b);
    }
    String reduceOp = new String(readBytes(b), StandardCharsets.UTF_8);
    int root = b.getInt();
    return new Signature(operation, dtype, reduceOp, root, longs(b), longs(b), longs(b));
  }

  private static int size(long @Nullable [] values) {
    return 4 + (values == null ? 0 : 8 * values.length);
  }

  private static void put(ByteBuffer b, long @Nullable [] values) {
    b.putInt(values == null ? -1 : values.length);
    if (values != null) {
      for (long v : values) {
        b.putLong(v);
      }
    }
  }

  private static long @Nullable [] longs(ByteBuffer b) {
    int n = b.getInt();
    if (n == -1) {
      return null;
    }
    if (n < 0 || n > b.remaining() / 8) {
      throw new DistributedException("a frame has a list of " + n + " numbers");
    }
    long[] out = new long[n];
    for (int i = 0; i < n; i++) {
      out[i] = b.getLong();
    }
    return out;
  }
}
