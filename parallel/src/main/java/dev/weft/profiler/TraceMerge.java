package dev.weft.profiler;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.zip.GZIPOutputStream;
import org.jspecify.annotations.Nullable;

/**
 * Joins the traces of ranks on rank 0's clock. Stateless; reads one event at a time, so that the
 * memory it needs is that of the summary's intervals.
 */
public final class TraceMerge {
  private static final ObjectMapper JSON = new ObjectMapper();

  private TraceMerge() {}

  /**
   * Reads the traces, and says what they tell together.
   *
   * @param paths folders with traces, or traces; one a rank, ranks may be missing
   * @param out where the joined trace goes (gzip), or null for none
   * @throws IllegalArgumentException if there are none, or what is read is no trace of Weft's
   */
  public static TraceSummary merge(List<Path> paths, @Nullable Path out) {
    List<TraceFile> files = TraceFile.openAll(paths);
    TraceSummary summary = new TraceSummary(files.get(0).worldSize());
    long zero = files.stream().mapToLong(TraceFile::startNanos).min().orElseThrow();
    try {
      if (out == null) {
        for (TraceFile file : files) {
          read(file, zero, summary, null);
        }
      } else {
        write(files, zero, summary, out);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("the joined trace cannot be written to " + out + ": " + e, e);
    }
    return summary;
  }

  private static void write(List<TraceFile> files, long zero, TraceSummary summary, Path out)
      throws IOException {
    Path part = out.resolveSibling(out.getFileName() + ".part");
    try (JsonGenerator json =
        JSON.getFactory()
            .createGenerator(
                new BufferedOutputStream(new GZIPOutputStream(Files.newOutputStream(part))))) {
      json.writeStartObject();
      json.writeStringField("displayTimeUnit", "ms");
      json.writeArrayFieldStart("weft_ranks");
      for (TraceFile file : files) {
        json.writeTree(file.head());
      }
      json.writeEndArray();
      json.writeArrayFieldStart("traceEvents");
      for (TraceFile file : files) {
        read(file, zero, summary, json);
      }
      json.writeEndArray();
      json.writeEndObject();
    }
    Files.move(part, out, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
  }

  private static void read(
      TraceFile file, long zero, TraceSummary summary, @Nullable JsonGenerator out) {
    double shift = (file.startNanos() - zero) / 1e3;
    RankTrace rank = summary.rank(file);
    file.events(
        event -> {
          if (event.has("ts")) {
            event.put("ts", Math.round((event.get("ts").asDouble() + shift) * 1e3) / 1e3);
          }
          rank.add(event, shift);
          if (out != null) {
            write(out, event);
          }
        });
    rank.finish();
  }

  private static void write(JsonGenerator out, ObjectNode event) {
    try {
      out.writeTree(event);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
