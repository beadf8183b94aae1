package dev.weft.c10d.host;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * What one rank sends another in a phase of a collective. Immutable but for its payload.
 *
 * @param source the sender's group rank
 * @param signature what the sender calls, in an opening
 * @param payload data, or null where the phase carries none
 */
record Message(int source, @Nullable Signature signature, @Nullable Payload payload) {
  /** What came along, as text. */
  String text() {
    return ((Payload.Inline) Objects.requireNonNull(payload)).text();
  }
}
