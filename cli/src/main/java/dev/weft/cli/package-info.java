/**
 * The commands behind {@code bin/weft}: {@code Weft} is the entry, each command a class of its own
 * that a line in {@code Weft} adds.
 */
@NullMarked
package dev.weft.cli;

import org.jspecify.annotations.NullMarked;
