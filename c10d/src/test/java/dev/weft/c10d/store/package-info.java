/**
 * Specifications of the stores: their common semantics, the wire protocol, and what happens when
 * things go wrong.
 */
@NullMarked
package dev.weft.c10d.store;

import org.jspecify.annotations.NullMarked;
