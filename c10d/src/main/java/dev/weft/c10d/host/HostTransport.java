package dev.weft.c10d.host;

import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How ranks in different processes of one machine move the data of collectives; {@value #VARIABLE}
 * says which. Connections over TCP there are in any case: they tell of ranks that end, and wake
 * those that sleep.
 */
enum HostTransport {
  /** Shared memory where it can be had, else TCP, with the reason in the log. */
  AUTO((byte) 1),
  /** TCP alone. */
  TCP((byte) 2),
  /** Shared memory, or an error. */
  SHM((byte) 3);

  static final String VARIABLE = "WEFT_HOST_TRANSPORT";

  private final byte code;

  HostTransport(byte code) {
    this.code = code;
  }

  /** What stands for it between ranks. */
  byte code() {
    return code;
  }

  /** The transport of a code, or null where there is none. */
  static @Nullable HostTransport of(byte code) {
    for (HostTransport t : values()) {
      if (t.code == code) {
        return t;
      }
    }
    return null;
  }

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
