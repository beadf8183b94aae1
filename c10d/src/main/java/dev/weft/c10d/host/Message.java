package dev.weft.c10d.host;

import org.jspecify.annotations.Nullable;

/**
 * What one rank sends another in a phase of a collective. Immutable but for its payload.
 *
 * @param source the sender's group rank
 * @param signature what the sender calls, in an opening
 * @param payload data, or null where the phase carries none
 */
record Message(int source, @Nullable Signature signature, @Nullable Payload payload) {}
