/** Benchmarks that print JSON lines, to be compared with those of other systems. */
@NullMarked
package dev.weft.bench;

import org.jspecify.annotations.NullMarked;
