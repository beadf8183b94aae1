package dev.weft.dtensor.checkpoint;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.weft.tensor.DType;
import dev.weft.tensor.Regions;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.memory.Memory;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.zip.CRC32C;

/**
 * Files in the safetensors format: an 8-byte little-endian header length, a JSON header with the
 * dtype, the shape and the byte range of each tensor, then the data in row-major order. Reading
 * trusts nothing in the header. Not thread-safe.
 */
public final class Safetensors implements AutoCloseable {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final int MAX_HEADER = 100 << 20;
  private static final int CHUNK = 1 << 20;

  private final Path file;
  private final FileChannel channel;
  private final long dataStart;
  private final Map<String, Entry> entries;
  private final byte[] chunk = new byte[CHUNK];

  /**
   * A tensor in a file.
   *
   * @param begin first byte, from the start of the data
   * @param end byte after the last
   */
  public record Entry(DType dtype, long[] shape, long begin, long end) {}

  private Safetensors(Path file, FileChannel channel, long dataStart, Map<String, Entry> entries) {
    this.file = file;
    this.channel = channel;
    this.dataStart = dataStart;
    this.entries = entries;
  }

  // ---- writing ----

  /**
   * Writes tensors and forces them to disk.
   *
   * @param tensors plain, on the cpu
   * @return the CRC-32C of each tensor's bytes
   */
  public static Map<String, Long> write(Path file, Map<String, ? extends StridedTensor> tensors) {
    return write(file, tensors, Map.of());
  }

  /**
   * The same with text about the file.
   *
   * @param metadata by name; what reads the file may show it
   */
  public static Map<String, Long> write(
      Path file, Map<String, ? extends StridedTensor> tensors, Map<String, String> metadata) {
    ObjectNode header = MAPPER.createObjectNode();
    if (!metadata.isEmpty()) {
      ObjectNode node = header.putObject("__metadata__");
      metadata.forEach(node::put);
    }
    long at = 0;
    for (Map.Entry<String, ? extends StridedTensor> e : tensors.entrySet()) {
      StridedTensor t = e.getValue();
      ObjectNode node = header.putObject(e.getKey());
      node.put("dtype", name(t.dtype()));
      ArrayNode shape = node.putArray("shape");
      for (long s : t.shape()) {
        shape.add(s);
      }
      long bytes = t.numel() * t.dtype().byteSize();
      node.putArray("data_offsets").add(at).add(at + bytes);
      at += bytes;
    }
    try (FileChannel out =
        FileChannel.open(
            file,
            StandardOpenOption.CREATE,
            StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.WRITE)) {
      byte[] json = MAPPER.writeValueAsBytes(header);
      byte[] padded = Arrays.copyOf(json, (json.length + 7) / 8 * 8);
      Arrays.fill(padded, json.length, padded.length, (byte) ' ');
      ByteBuffer head = ByteBuffer.allocate(8 + padded.length).order(ByteOrder.LITTLE_ENDIAN);
      head.putLong(padded.length).put(padded).flip();
      writeAll(out, head);
      Map<String, Long> sums = new LinkedHashMap<>();
      for (Map.Entry<String, ? extends StridedTensor> e : tensors.entrySet()) {
        sums.put(e.getKey(), writeData(out, e.getValue()));
      }
      out.force(true);
      return sums;
    } catch (IOException e) {
      throw new CheckpointException("cannot write " + file + ": " + e.getMessage(), e);
    }
  }

  private static long writeData(FileChannel out, StridedTensor tensor) throws IOException {
    StridedTensor t = Regions.contiguous(tensor);
    long address = t.dataAddress();
    long left = t.numel() * t.dtype().byteSize();
    byte[] bytes = new byte[(int) Math.min(CHUNK, Math.max(left, 1))];
    CRC32C sum = new CRC32C();
    while (left > 0) {
      int n = (int) Math.min(bytes.length, left);
      Memory.get(address, bytes, 0, n);
      sum.update(bytes, 0, n);
      writeAll(out, ByteBuffer.wrap(bytes, 0, n));
      address += n;
      left -= n;
    }
    return sum.getValue();
  }

  private static void writeAll(FileChannel out, ByteBuffer buffer) throws IOException {
    while (buffer.hasRemaining()) {
      int unused = out.write(buffer);
    }
  }

  // ---- reading ----

  /**
   * Opens a file and checks its header.
   *
   * @throws CheckpointException if it is missing, truncated or not such a file
   */
  public static Safetensors open(Path file) {
    FileChannel channel = null;
    try {
      channel = FileChannel.open(file, StandardOpenOption.READ);
      Safetensors opened = header(file, channel);
      channel = null;
      return opened;
    } catch (IOException e) {
      throw new CheckpointException("cannot read " + file + ": " + e, e);
    } finally {
      if (channel != null) {
        closeQuietly(channel);
      }
    }
  }

  private static void closeQuietly(FileChannel channel) {
    try {
      channel.close();
    } catch (IOException e) {
      throw new CheckpointException("cannot close a file: " + e.getMessage(), e);
    }
  }

  private static Safetensors header(Path file, FileChannel channel) throws IOException {
    long size = channel.size();
    ByteBuffer length = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
    if (size < 8) {
      throw bad(file, "it has " + size + " bytes; expected a header of at least 8");
    }
    readAll(channel, length, 0);
    long headerBytes = length.getLong(0);
    if (headerBytes < 2 || headerBytes > MAX_HEADER || headerBytes > size - 8) {
      throw bad(
          file, "its header has a length of " + headerBytes + " in a file of " + size + " bytes");
    }
    ByteBuffer json = ByteBuffer.allocate((int) headerBytes);
    readAll(channel, json, 8);
    JsonNode root;
    try {
      root = MAPPER.readTree(json.array());
    } catch (JsonProcessingException e) {
      throw new CheckpointException(file + " is damaged: its header is not JSON", e);
    }
    Map<String, Entry> entries = new LinkedHashMap<>();
    long dataBytes = size - 8 - headerBytes;
    for (Map.Entry<String, JsonNode> e : root.properties()) {
      if (!e.getKey().equals("__metadata__")) {
        entries.put(e.getKey(), entry(file, e.getKey(), e.getValue(), dataBytes));
      }
    }
    return new Safetensors(file, channel, 8 + headerBytes, entries);
  }

  private static Entry entry(Path file, String name, JsonNode node, long dataBytes) {
    JsonNode shapeNode = node.path("shape");
    JsonNode offsets = node.path("data_offsets");
    if (!shapeNode.isArray() || offsets.size() != 2 || !node.path("dtype").isTextual()) {
      throw bad(file, "tensor '" + name + "' lacks dtype, shape or data_offsets");
    }
    DType dtype = dtype(file, name, node.get("dtype").asText());
    long[] shape = new long[shapeNode.size()];
    for (int i = 0; i < shape.length; i++) {
      shape[i] = shapeNode.get(i).asLong(-1);
    }
    long begin = offsets.get(0).asLong(-1);
    long end = offsets.get(1).asLong(-1);
    long bytes;
    try {
      bytes = Math.multiplyExact(Shapes.numel(Shapes.check(shape)), dtype.byteSize());
    } catch (IllegalArgumentException | ArithmeticException e) {
      throw new CheckpointException(
          file + " is damaged: tensor '" + name + "' has shape " + Arrays.toString(shape), e);
    }
    if (begin < 0 || end - begin != bytes || end > dataBytes) {
      throw bad(
          file,
          "tensor '"
              + name
              + "' lies at bytes "
              + begin
              + " to "
              + end
              + " of "
              + dataBytes
              + " and needs "
              + bytes
              + "; the file is truncated or changed");
    }
    return new Entry(dtype, shape, begin, end);
  }

  private static CheckpointException bad(Path file, String what) {
    return new CheckpointException(file + " is damaged: " + what);
  }

  /** The tensors by name, in the order of the header. */
  public Map<String, Entry> entries() {
    return java.util.Collections.unmodifiableMap(entries);
  }

  /** Reads a whole tensor; the caller's scope owns it. */
  public StridedTensor read(String name) {
    Entry e = get(name);
    StridedTensor t = Tensors.empty(e.dtype(), e.shape());
    readBytes(name, 0, t.dataAddress(), e.end() - e.begin());
    return t;
  }

  /** The CRC-32C of a tensor's bytes. */
  public long checksum(String name) {
    Entry e = get(name);
    CRC32C sum = new CRC32C();
    transfer(name, 0, e.end() - e.begin(), (n, done) -> sum.update(chunk, 0, n));
    return sum.getValue();
  }

  Entry get(String name) {
    Entry e = entries.get(name);
    if (e == null) {
      throw new CheckpointException(
          file + " has no tensor '" + name + "'; it has " + entries.keySet());
    }
    return e;
  }

  /** Reads a range of a tensor's bytes to an address. */
  void readBytes(String name, long from, long address, long bytes) {
    transfer(name, from, bytes, (n, done) -> Memory.put(address + done, chunk, 0, n));
  }

  private interface Sink {
    void take(int bytes, long done);
  }

  private void transfer(String name, long from, long bytes, Sink sink) {
    long position = dataStart + get(name).begin() + from;
    long done = 0;
    try {
      while (done < bytes) {
        int n = (int) Math.min(CHUNK, bytes - done);
        readAll(channel, ByteBuffer.wrap(chunk, 0, n), position + done);
        sink.take(n, done);
        done += n;
      }
    } catch (IOException e) {
      throw new CheckpointException(
          "cannot read tensor '" + name + "' of " + file + ": " + e.getMessage(), e);
    }
  }

  private static void readAll(FileChannel channel, ByteBuffer buffer, long position)
      throws IOException {
    long at = position;
    while (buffer.hasRemaining()) {
      int n = channel.read(buffer, at);
      if (n < 0) {
        throw new EOFException("the file ends at byte " + at);
      }
      at += n;
    }
  }

  static String name(DType dtype) {
    return switch (dtype) {
      case FLOAT64 -> "F64";
      case FLOAT32 -> "F32";
      case FLOAT16 -> "F16";
      case BFLOAT16 -> "BF16";
      case INT64 -> "I64";
      case INT32 -> "I32";
      case INT16 -> "I16";
      case INT8 -> "I8";
      case UINT8 -> "U8";
      case BOOL -> "BOOL";
    };
  }

  private static DType dtype(Path file, String tensor, String name) {
    for (DType d : DType.values()) {
      if (name(d).equals(name)) {
        return d;
      }
    }
    throw bad(file, "tensor '" + tensor + "' has the unknown dtype '" + name + "'");
  }

  @Override
  public void close() {
    closeQuietly(channel);
  }
}
