package dev.weft.c10d;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/**
 * Objects as JSON text. What is read becomes the class that the reader names and no other: nothing
 * in the text chooses a class.
 */
final class ObjectCodec {
  private static final ObjectMapper JSON =
      JsonMapper.builder()
          .disable(JsonWriteFeature.WRITE_NAN_AS_STRINGS)
          .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
          .build();

  private ObjectCodec() {}

  static byte[] encode(String operation, String argument, @Nullable Object value) {
    try {
      return JSON.writeValueAsBytes(value);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException(
          operation
              + ": "
              + argument
              + " of class "
              + (value == null ? "null" : value.getClass().getName())
              + " cannot be written as JSON; expected null, booleans, numbers, text, lists, maps,"
              + " records or beans of these: "
              + e.getOriginalMessage(),
          e);
    }
  }

  static <T> @Nullable T decode(String operation, byte[] json, int rank, Class<T> type) {
    try {
      return JSON.readValue(json, type);
    } catch (IOException e) {
      throw new DistributedException(
          operation
              + ": the object of rank "
              + rank
              + " is no "
              + type.getName()
              + ": "
              + shortened(new String(json, UTF_8)),
          e);
    }
  }

  private static String shortened(String text) {
    return text.length() <= 200 ? text : text.substring(0, 200) + "...";
  }
}
