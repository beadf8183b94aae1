/** Runnable programs. */
@NullMarked
package dev.weft.examples;

import org.jspecify.annotations.NullMarked;
