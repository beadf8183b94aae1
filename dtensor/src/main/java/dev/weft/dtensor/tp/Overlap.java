package dev.weft.dtensor.tp;

import java.util.Locale;

/**
 * Whether products of a sequence-parallel layer are split to overlap with the exchange of their
 * pieces, see {@link OverlappedLinear}. The same on all ranks of the process; thread-safe.
 */
public final class Overlap {
  /** When to split. */
  public enum Mode {
    /** Where what is exchanged is large enough. */
    AUTO,
    /** Never. */
    OFF,
    /** Wherever it is possible. */
    ALWAYS
  }

  private static final String VARIABLE = "WEFT_OVERLAP";
  private static final long LARGE = 8L << 20;

  private static volatile Mode mode = fromEnvironment(System.getenv(VARIABLE));
  private static volatile long minBytes = LARGE;

  private Overlap() {}

  static Mode fromEnvironment(@org.jspecify.annotations.Nullable String text) {
    if (text == null || text.isEmpty()) {
      return Mode.AUTO;
    }
    for (Mode m : Mode.values()) {
      if (m.name().equals(text.toUpperCase(Locale.ROOT))) {
        return m;
      }
    }
    throw new IllegalArgumentException(
        VARIABLE + " is '" + text + "'; expected auto, off or always");
  }

  /** When to split; AUTO at first, or what the environment variable WEFT_OVERLAP says. */
  public static Mode mode() {
    return mode;
  }

  /** Sets it. */
  public static void mode(Mode mode) {
    Overlap.mode = mode;
  }

  /** From how many bytes on, of what all ranks exchange together, AUTO splits. */
  public static long minBytes() {
    return minBytes;
  }

  /** Sets it. */
  public static void minBytes(long bytes) {
    if (bytes < 0) {
      throw new IllegalArgumentException("bytes is " + bytes + "; expected 0 or more");
    }
    minBytes = bytes;
  }

  static boolean pays(long bytes) {
    return switch (mode) {
      case OFF -> false;
      case ALWAYS -> true;
      case AUTO -> bytes >= minBytes;
    };
  }
}
