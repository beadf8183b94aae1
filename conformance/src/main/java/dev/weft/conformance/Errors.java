package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.DistributedException;
import java.util.NoSuchElementException;

/** Which exceptions count as the same kind of refusal. */
final class Errors {
  private Errors() {}

  /** Whether an exception is of the kind that a recorded error type asks for. */
  static boolean fits(String type, Throwable e) {
    return switch (type) {
      case "ValueError", "TypeError", "NotImplementedError" -> isArgument(e);
      case "IndexError" -> e instanceof IndexOutOfBoundsException || isArgument(e);
      case "KeyError" -> e instanceof NoSuchElementException || isArgument(e);
      // Both mean arguments as often as states.
      case "RuntimeError", "AssertionError" ->
          isArgument(e)
              || e instanceof IllegalStateException
              || e instanceof IndexOutOfBoundsException
              || e instanceof DistributedException;
      default -> e instanceof DistributedException;
    };
  }

  private static boolean isArgument(Throwable e) {
    return e instanceof IllegalArgumentException || e instanceof UnsupportedOperationException;
  }

  /** Checks that an exception answers to a recorded error. */
  static void requireFits(String what, JsonNode error, Throwable e) {
    String type = error.get("type").asText();
    Json.require(fits(type, e), what + ": got " + e + ", want " + type);
  }
}
