package dev.weft.dtensor;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** Short names for placements, meant for static import. */
public final class Placements {
  private Placements() {}

  /** Cut along a tensor dimension; negative ones count from the end. */
  public static Placement shard(int dim) {
    return new Shard(dim);
  }

  /** Whole on every rank. */
  public static Placement replicate() {
    return Replicate.INSTANCE;
  }

  /** Contributions to a sum. */
  public static Placement partial() {
    return Partial.SUM;
  }

  /** Contributions to a reduction. */
  public static Placement partial(Partial.Op op) {
    return new Partial(op);
  }

  /**
   * Reads {@code R}, {@code S(1)}, {@code SS(0,4)}, {@code P(sum)} or {@code NP(2)}, as placements
   * print.
   *
   * @throws IllegalArgumentException if the text is none of these
   */
  public static Placement parse(String text) {
    if (text.equals("R")) {
      return Replicate.INSTANCE;
    }
    if (text.endsWith(")") && text.length() > 3) {
      String inner = text.substring(2, text.length() - 1);
      try {
        if (text.startsWith("S(")) {
          return new Shard(Integer.parseInt(inner));
        }
        if (text.startsWith("SS(")) {
          String[] parts = text.substring(3, text.length() - 1).split(",", -1);
          return new StridedShard(
              Integer.parseInt(parts[0].trim()), Integer.parseInt(parts[1].trim()));
        }
        if (text.startsWith("NP(")) {
          return Partial.norm(Double.parseDouble(text.substring(3, text.length() - 1)));
        }
        if (text.startsWith("P(")) {
          return new Partial(Partial.Op.valueOf(inner.toUpperCase(Locale.ROOT)));
        }
      } catch (IllegalArgumentException | ArrayIndexOutOfBoundsException e) {
        throw unreadable(text, e);
      }
    }
    throw unreadable(text, null);
  }

  private static IllegalArgumentException unreadable(
      String text, @org.jspecify.annotations.Nullable Exception cause) {
    return new IllegalArgumentException(
        "placement '"
            + text
            + "' is not valid; expected R, S(dim), SS(dim,pieces), NP(order) or P(op) with op of "
            + Arrays.toString(Partial.Op.values()),
        cause);
  }

  static List<Placement> listOf(Placement... placements) {
    return List.of(placements);
  }
}
