package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * What Weft deliberately does otherwise than recorded, as data: {@code deviations.json} beside this
 * class. An entry says only that a case may differ; its runner must still find the result right by
 * comparison with the dense one. Immutable.
 */
final class Deviations {
  /**
   * One entry.
   *
   * @param file the golden file
   * @param op matches operators or graphs as a whole
   * @param error matches in the recorded error's message; empty for a recorded result
   * @param collectives how many more there may be for each mesh dimension, of one element each
   * @param reason why Weft differs
   */
  private record Entry(String file, Pattern op, Pattern error, int collectives, String reason) {}

  private static final List<Entry> ENTRIES = read();

  private Deviations() {}

  private static List<Entry> read() {
    List<Entry> entries = new ArrayList<>();
    try (InputStream in = Deviations.class.getResourceAsStream("deviations.json")) {
      if (in == null) {
        throw new IllegalStateException("deviations.json is missing beside " + Deviations.class);
      }
      for (JsonNode e : new ObjectMapper().readTree(in)) {
        entries.add(
            new Entry(
                e.get("file").asText(),
                Pattern.compile(e.get("op").asText()),
                Pattern.compile(e.has("error") ? e.get("error").asText() : ""),
                e.has("collectives") ? e.get("collectives").asInt() : 0,
                e.get("reason").asText()));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return List.copyOf(entries);
  }

  /** Why a recorded error need not be raised, or null. */
  static @Nullable String insteadOfError(String file, String op, String message) {
    for (Entry e : ENTRIES) {
      if (e.file.equals(file)
          && !e.error.pattern().isEmpty()
          && e.op.matcher(op).matches()
          && e.error.matcher(message).find()) {
        return e.reason;
      }
    }
    return null;
  }

  /** What an operator may issue beyond what is recorded. */
  record Extra(int collectives, String reason) {}

  /** What an operator may issue on a mesh beyond what is recorded, or null. */
  static @Nullable Extra extra(String file, String op, int meshDims) {
    for (Entry e : ENTRIES) {
      if (e.file.equals(file) && e.collectives > 0 && e.op.matcher(op).matches()) {
        return new Extra(e.collectives * meshDims, e.reason);
      }
    }
    return null;
  }
}
