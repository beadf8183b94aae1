package dev.weft.c10d.debug;

import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Environment variables under several names, of which the first that is set wins. */
public final class Variables {
  private static final Set<String> TRUE = Set.of("1", "y", "yes", "t", "true");
  private static final Set<String> FALSE = Set.of("0", "n", "no", "f", "false");

  private final Map<String, String> environment;

  /** Reads these variables. */
  public Variables(Map<String, String> environment) {
    this.environment = environment;
  }

  /** The first that is set and not blank, or null. */
  public @Nullable String text(String... names) {
    for (String name : names) {
      String value = environment.get(name);
      if (value != null && !value.isBlank()) {
        return value.trim();
      }
    }
    return null;
  }

  /** A truth value; what else is set is an error that names the variable. */
  public boolean flag(boolean fallback, String... names) {
    String value = text(names);
    if (value == null) {
      return fallback;
    }
    String lower = value.toLowerCase(Locale.ROOT);
    if (!TRUE.contains(lower) && !FALSE.contains(lower)) {
      throw new IllegalArgumentException(
          "environment variable " + set(names) + " is '" + value + "'; expected true or false");
    }
    return TRUE.contains(lower);
  }

  /** A number of 0 or more; what else is set is an error that names the variable. */
  public long number(long fallback, String... names) {
    String value = text(names);
    if (value == null) {
      return fallback;
    }
    try {
      long number = Long.parseLong(value);
      if (number >= 0) {
        return number;
      }
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException(wrong(value, names), e);
    }
    throw new IllegalArgumentException(wrong(value, names));
  }

  private String wrong(String value, String... names) {
    return "environment variable "
        + set(names)
        + " is '"
        + value
        + "'; expected an integer of 0 or more";
  }

  private String set(String... names) {
    for (String name : names) {
      if (environment.containsKey(name)) {
        return name;
      }
    }
    return names[0];
  }
}
