package dev.weft.examples.reference;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.zip.GZIPInputStream;

/** The files that come with the examples. */
final class Resources {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private Resources() {}

  private static InputStream open(String name) {
    InputStream in = Resources.class.getResourceAsStream("/dev/weft/examples/" + name);
    if (in == null) {
      throw new IllegalStateException("resource " + name + " is missing from the examples");
    }
    return in;
  }

  static <T> T read(String name, Class<T> type) {
    try (InputStream in = open(name)) {
      return MAPPER.readValue(in, type);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static JsonNode gzippedTree(String name) {
    try (InputStream in = new GZIPInputStream(open(name))) {
      return MAPPER.readTree(in);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static byte[] bytes(String name) {
    try (InputStream in = open(name)) {
      return in.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
