/**
 * Distributed communication: the world and its process groups, and the exceptions that tell what
 * went wrong in it.
 */
@NullMarked
package dev.weft.c10d;

import org.jspecify.annotations.NullMarked;
