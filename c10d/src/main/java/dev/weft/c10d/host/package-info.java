/**
 * The CPU backend in pure Java. {@code HostBackend} turns each collective into an exchange of
 * pieces of memory between ranks ({@code Round}); a {@code Link} carries a piece to one peer, by
 * lending memory inside a JVM or over TCP between processes; a {@code Mailbox} is where pieces
 * arrive.
 */
@NullMarked
package dev.weft.c10d.host;

import org.jspecify.annotations.NullMarked;
