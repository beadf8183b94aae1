/** Specifications of the commands. */
@NullMarked
package dev.weft.cli;

import org.jspecify.annotations.NullMarked;
