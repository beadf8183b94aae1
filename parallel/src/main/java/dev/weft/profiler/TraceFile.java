package dev.weft.profiler;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;

/**
 * A trace that {@link Profiler} wrote: what its head says, and its events, read one by one.
 *
 * @param path where it lies
 * @param head the object {@code weft}
 */
record TraceFile(Path path, JsonNode head) {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String SUFFIX = ".trace.json.gz";

  /** Reads a file's head. */
  static TraceFile open(Path path) {
    try (JsonParser in = parser(path)) {
      while (in.nextToken() != null) {
        if (in.currentToken() == JsonToken.FIELD_NAME && in.currentName().equals("weft")) {
          JsonToken unused = in.nextToken();
          JsonNode head = in.readValueAsTree();
          return new TraceFile(path, head);
        }
        if (in.currentToken() == JsonToken.START_ARRAY) {
          break;
        }
      }
    } catch (IOException e) {
      throw new IllegalArgumentException("trace " + path + " cannot be read: " + e, e);
    }
    throw new IllegalArgumentException(
        "trace " + path + " has no 'weft' before its events; expected one of Weft's profiler");
  }

  /** The traces that a folder holds, or the files themselves, by rank. */
  static List<TraceFile> openAll(List<Path> paths) {
    List<TraceFile> files = new ArrayList<>();
    for (Path path : paths) {
      if (!Files.isDirectory(path)) {
        files.add(open(path));
        continue;
      }
      try (Stream<Path> inside = Files.list(path)) {
        inside
            .filter(p -> p.getFileName().toString().matches("rank\\d+\\.trace\\.json\\.gz"))
            .forEach(p -> files.add(open(p)));
      } catch (IOException e) {
        throw new UncheckedIOException("folder " + path + " cannot be read: " + e, e);
      }
    }
    if (files.isEmpty()) {
      throw new IllegalArgumentException(
          "no traces in " + paths + "; expected files such as rank0" + SUFFIX);
    }
    files.sort(java.util.Comparator.comparingInt(TraceFile::rank));
    for (int i = 1; i < files.size(); i++) {
      if (files.get(i).rank() == files.get(i - 1).rank()) {
        throw new IllegalArgumentException(
            "traces %s and %s are both of rank %d; expected one a rank"
                .formatted(files.get(i - 1).path, files.get(i).path, files.get(i).rank()));
      }
    }
    return List.copyOf(files);
  }

  private static JsonParser parser(Path path) throws IOException {
    InputStream raw = new BufferedInputStream(Files.newInputStream(path));
    try {
      boolean packed = path.getFileName().toString().endsWith(".gz");
      return JSON.getFactory().createParser(packed ? new GZIPInputStream(raw) : raw);
    } catch (IOException e) {
      raw.close();
      throw e;
    }
  }

  int rank() {
    return head.path("rank").asInt();
  }

  int worldSize() {
    return head.path("world_size").asInt();
  }

  /** When the trace begins, in nanoseconds of rank 0's clock. */
  long startNanos() {
    return head.path("clock").path("start_ns").asLong()
        + head.path("clock").path("offset_ns").asLong();
  }

  long uncertaintyNanos() {
    return head.path("clock").path("uncertainty_ns").asLong();
  }

  /** Reads all events in the order they stand in. */
  void events(Consumer<ObjectNode> each) {
    try (JsonParser in = parser(path)) {
      while (in.nextToken() != null) {
        if (in.currentToken() == JsonToken.FIELD_NAME && in.currentName().equals("traceEvents")) {
          JsonToken unused = in.nextToken();
          while (in.nextToken() == JsonToken.START_OBJECT) {
            ObjectNode event = in.readValueAsTree();
            each.accept(event);
          }
          return;
        }
      }
    } catch (IOException e) {
      throw new IllegalArgumentException("trace " + path + " cannot be read: " + e, e);
    }
    throw new IllegalArgumentException("trace " + path + " has no 'traceEvents'");
  }
}
