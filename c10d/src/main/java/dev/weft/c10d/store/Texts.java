package dev.weft.c10d.store;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.List;

/** Wording and checks that the stores share. */
final class Texts {
  private static final int SHOWN_CHARACTERS = 120;
  private static final int SHOWN_KEYS = 8;

  private Texts() {}

  /** Shortens a key or value for a message. */
  static String brief(String text) {
    return text.length() <= SHOWN_CHARACTERS
        ? text
        : text.substring(0, SHOWN_CHARACTERS) + "... (" + text.length() + " characters)";
  }

  /** Shortens a stored value for a message. */
  static String brief(byte[] value) {
    return brief(new String(value, UTF_8));
  }

  /** Writes a list of keys, shortened, as {@code 'a', 'b' and 3 more}. */
  static String brief(List<String> keys) {
    var shown = new ArrayList<String>();
    for (String key : keys.subList(0, Math.min(SHOWN_KEYS, keys.size()))) {
      shown.add("'" + brief(key) + "'");
    }
    int rest = keys.size() - shown.size();
    return String.join(", ", shown) + (rest > 0 ? " and " + rest + " more" : "");
  }

  static void checkSameLength(List<String> keys, List<byte[]> values) {
    if (keys.size() != values.size()) {
      throw new IllegalArgumentException(
          "multiSet got %d keys and %d values; expected as many values as keys"
              .formatted(keys.size(), values.size()));
    }
  }

  static void checkWorldSize(int worldSize) {
    if (worldSize < 1) {
      throw new IllegalArgumentException("worldSize is " + worldSize + "; expected 1 or more");
    }
  }
}
