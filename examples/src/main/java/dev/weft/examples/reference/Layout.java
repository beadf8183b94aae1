package dev.weft.examples.reference;

/**
 * A data-parallel by tensor-parallel layout.
 *
 * @param dp data-parallel ranks
 * @param tp tensor-parallel ranks
 */
public record Layout(int dp, int tp) {
  /** Checks the sizes. */
  public Layout {
    if (dp < 1 || tp < 1) {
      throw new IllegalArgumentException(
          "mesh dp=" + dp + ",tp=" + tp + ": sizes must be at least 1");
    }
  }

  /**
   * Reads {@code dp=2,tp=2}; a name left out counts as 1.
   *
   * @throws IllegalArgumentException for another name or a bad number
   */
  public static Layout parse(String text) {
    int dp = 1;
    int tp = 1;
    for (String part : text.split(",", -1)) {
      String[] pair = part.split("=", -1);
      int size;
      try {
        size = pair.length == 2 ? Integer.parseInt(pair[1].trim()) : 0;
      } catch (NumberFormatException e) {
        size = 0;
      }
      String name = pair[0].trim();
      if (size < 1 || !(name.equals("dp") || name.equals("tp"))) {
        throw new IllegalArgumentException(
            "mesh '" + text + "' is not valid; expected something like dp=2,tp=2");
      }
      if (name.equals("dp")) {
        dp = size;
      } else {
        tp = size;
      }
    }
    return new Layout(dp, tp);
  }

  @Override
  public String toString() {
    return "dp=" + dp + ",tp=" + tp;
  }

  /** The number of ranks. */
  public int ranks() {
    return dp * tp;
  }
}
