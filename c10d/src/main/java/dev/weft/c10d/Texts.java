package dev.weft.c10d;

import java.util.ArrayList;
import java.util.List;

/** Pieces of messages. */
final class Texts {
  private static final int FEW = 8;

  private Texts() {}

  static String group(String name, String description, List<Integer> ranks) {
    String shown = description.isEmpty() ? name : name + " (" + description + ")";
    return "'" + shown + "' of ranks " + ranks(ranks);
  }

  /** Ranks in order; of more than a few, runs of three or more are shortened: {@code [0-7, 9]}. */
  static String ranks(List<Integer> ranks) {
    if (ranks.size() <= FEW) {
      return ranks.toString();
    }
    List<String> parts = new ArrayList<>();
    int i = 0;
    while (i < ranks.size()) {
      int j = i;
      while (j + 1 < ranks.size() && ranks.get(j + 1) == ranks.get(j) + 1) {
        j++;
      }
      if (j - i >= 2) {
        parts.add(ranks.get(i) + "-" + ranks.get(j));
      } else {
        for (int k = i; k <= j; k++) {
          parts.add(String.valueOf(ranks.get(k)));
        }
      }
      i = j + 1;
    }
    return "[" + String.join(", ", parts) + "]";
  }
}
