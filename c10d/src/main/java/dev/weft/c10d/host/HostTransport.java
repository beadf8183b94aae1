package dev.weft.c10d.host;

import java.util.Locale;
import java.util.Map;

/**
 * How ranks in different processes of one machine move the data of collectives; {@value #VARIABLE}
 * says which. Connections over TCP there are in any case: they tell of ranks that end, and wake
 * those that sleep.
 */
enum HostTransport {
  /** Shared memory where it can be had, else TCP, with the reason in the log. */
  AUTO,
  /** TCP alone. */
  TCP,
  /** Shared memory, or an error. */
  SHM;

  static final String VARIABLE = "WEFT_HOST_TRANSPORT";

  /** As it is written. */
  String value() {
    return name().toLowerCase(Locale.ROOT);
  }

  static HostTransport of(Map<String, String> environment) {
    String value = environment.get(VARIABLE);
    if (value == null || value.isBlank()) {
      return AUTO;
    }
    for (HostTransport t : values()) {
      if (t.name().equals(value.trim().toUpperCase(Locale.ROOT))) {
        return t;
      }
    }
    throw new IllegalArgumentException(VARIABLE + " is '" + value + "'; expected auto, tcp or shm");
  }
}
