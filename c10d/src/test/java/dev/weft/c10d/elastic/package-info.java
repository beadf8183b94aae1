/** Specifications of the launcher, on real processes. */
@NullMarked
package dev.weft.c10d.elastic;

import org.jspecify.annotations.NullMarked;
