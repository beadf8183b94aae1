package dev.weft.c10d.store;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.zip.GZIPInputStream;

/** Reads the golden data of c10d. */
final class Golden {
  private Golden() {}

  static JsonNode read(String name) throws IOException {
    try (var in = Golden.class.getResourceAsStream("/golden/c10d/" + name)) {
      if (in == null) {
        throw new FileNotFoundException(name);
      }
      return new ObjectMapper().readTree(new GZIPInputStream(in));
    }
  }
}
