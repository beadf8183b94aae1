/** A world of any size in one process, whose collectives end at once and move no data. */
@NullMarked
package dev.weft.c10d.fake;

import org.jspecify.annotations.NullMarked;
