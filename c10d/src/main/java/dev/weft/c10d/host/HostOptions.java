package dev.weft.c10d.host;

import dev.weft.c10d.BackendOptions;
import java.util.Map;
import java.util.TreeMap;

/**
 * What a group of the host backend can be told: how collectives move their data where ranks
 * exchange messages, in place of what the table in {@code docs/backends.md} says. The same on all
 * ranks of the group; ranks whose options differ are told so in the group's first collective.
 * Immutable.
 *
 * @param algorithms names by operation, such as {@code all_reduce} to {@code ring}
 */
public record HostOptions(Map<String, String> algorithms) implements BackendOptions {
  /** The variable that says the same for all groups without options, as {@link #parse} reads it. */
  public static final String VARIABLE = "WEFT_HOST_ALGORITHM";

  /** The table's choice for every operation. */
  public static final HostOptions DEFAULT = new HostOptions(Map.of());

  /**
   * Checks the names.
   *
   * @throws IllegalArgumentException if there is no such operation, or it has no such algorithm
   */
  public HostOptions {
    algorithms = Map.copyOf(algorithms);
    algorithms.forEach(
        (operation, name) -> {
          MessageAlgorithm unused = MessageAlgorithm.of("algorithms", operation, name);
        });
  }

  /** The same with an algorithm for an operation. */
  public HostOptions withAlgorithm(String operation, String name) {
    Map<String, String> all = new TreeMap<>(algorithms);
    all.put(operation, name);
    return new HostOptions(all);
  }

  /**
   * Reads a text such as {@code all_reduce=ring,broadcast=scatter}; an empty one names nothing.
   *
   * @param source what the text is, for errors
   * @throws IllegalArgumentException if it does not read so, or names what there is not
   */
  public static HostOptions parse(String source, String text) {
    Map<String, String> all = new TreeMap<>();
    for (String part : text.split(",", -1)) {
      if (text.isBlank()) {
        break;
      }
      String[] two = part.strip().split("=", -1);
      if (two.length != 2) {
        throw new IllegalArgumentException(
            source
                + " is '"
                + text
                + "'; expected operation=algorithm, several with commas between, of "
                + MessageAlgorithm.expected());
      }
      MessageAlgorithm unused = MessageAlgorithm.of(source, two[0], two[1]);
      if (all.put(two[0], two[1]) != null) {
        throw new IllegalArgumentException(
            source + " is '" + text + "'; expected " + two[0] + " once");
      }
    }
    return new HostOptions(all);
  }

  /** As {@link #parse} reads it, by operation; empty where nothing is named. */
  public String text() {
    StringBuilder text = new StringBuilder();
    new TreeMap<>(algorithms)
        .forEach(
            (operation, name) ->
                text.append(text.isEmpty() ? "" : ",").append(operation).append('=').append(name));
    return text.toString();
  }
}
