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
   * @param reason why Weft differs
   */
  private record Entry(String file, Pattern op, Pattern error, String reason) {}

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

  /** Why a result may differ from the recorded one, or null. */
  static @Nullable String insteadOfResult(String file, String op) {
    for (Entry e : ENTRIES) {
      if (e.file.equals(file) && e.error.pattern().isEmpty() && e.op.matcher(op).matches()) {
        return e.reason;
      }
    }
    return null;
  }
}
