package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.GZIPInputStream;

/** Reading of the golden files. Numbers keep what they need: see {@link JsonTensors}. */
final class Json {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private Json() {}

  /** A file, gzipped where its name says so. */
  static JsonNode read(Path file) throws IOException {
    try (InputStream raw = new BufferedInputStream(Files.newInputStream(file));
        InputStream in = file.toString().endsWith(".gz") ? new GZIPInputStream(raw) : raw) {
      return MAPPER.readTree(in);
    }
  }

  static int[] ints(JsonNode array) {
    int[] out = new int[array.size()];
    for (int i = 0; i < out.length; i++) {
      out[i] = (int) array.get(i).asDouble();
    }
    return out;
  }

  static long[] longs(JsonNode array) {
    long[] out = new long[array.size()];
    for (int i = 0; i < out.length; i++) {
      out[i] = array.get(i).asLong();
    }
    return out;
  }

  static List<String> strings(JsonNode array) {
    List<String> out = new ArrayList<>();
    array.forEach(n -> out.add(n.asText()));
    return out;
  }

  /** The same with a text replaced wherever it occurs. */
  static JsonNode replaced(JsonNode node, String from, String to) {
    try {
      return MAPPER.readTree(node.toString().replace(from, to));
    } catch (IOException e) {
      throw new IllegalStateException("cannot read back " + node, e);
    }
  }

  /** True for a field that is there and not null. */
  static boolean has(JsonNode node, String field) {
    return node.hasNonNull(field);
  }

  static void require(boolean condition, String message) {
    if (!condition) {
      throw new CaseRunner.Mismatch(message);
    }
  }

  /** Compares two values that print alike when they are equal. */
  static void requireEqual(String what, Object want, Object got) {
    if (!want.toString().equals(got.toString())) {
      throw new CaseRunner.Mismatch(what + ": got " + got + ", want " + want);
    }
  }
}
