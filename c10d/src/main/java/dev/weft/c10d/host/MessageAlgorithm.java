package dev.weft.c10d.host;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * How a collective moves data between ranks that exchange messages. Each name stands for one way in
 * each operation that has it; {@link #NAMES} says which those are.
 */
enum MessageAlgorithm {
  /** Straight from who has the data to who needs them. */
  FLAT,
  /** Each rank reduces one part, in the order of ranks, then the parts go to all. */
  DIRECT,
  /** Parts go from neighbour to neighbour and are reduced on the way, which changes the order. */
  RING,
  /** Parts go through all ranks: one a rank, which then go to who needs them. */
  SCATTER,
  /** Inside each machine, across machines with the parts, inside again. */
  HIERARCHICAL;

  /** The operations that have several, by the names that collectives have elsewhere. */
  static final Map<String, List<MessageAlgorithm>> NAMES =
      Map.of(
          "all_reduce", List.of(FLAT, DIRECT, RING, HIERARCHICAL),
          "broadcast", List.of(FLAT, SCATTER),
          "reduce", List.of(FLAT, SCATTER));

  /** As it is written. */
  String value() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** What may be written, for errors. */
  static String expected() {
    StringBuilder text = new StringBuilder();
    new TreeMap<>(NAMES)
        .forEach(
            (operation, all) ->
                text.append(text.isEmpty() ? "" : ", ")
                    .append(operation)
                    .append('=')
                    .append(String.join("|", all.stream().map(MessageAlgorithm::value).toList())));
    return text.toString();
  }

  /**
   * The algorithm of a name.
   *
   * @param source what names it, for errors
   * @throws IllegalArgumentException if there is no such operation, or it has no such algorithm
   */
  static MessageAlgorithm of(String source, String operation, String name) {
    for (MessageAlgorithm a : NAMES.getOrDefault(operation, List.of())) {
      if (a.value().equals(name)) {
        return a;
      }
    }
    throw new IllegalArgumentException(
        source + " has " + operation + "=" + name + "; expected some of " + expected());
  }
}
