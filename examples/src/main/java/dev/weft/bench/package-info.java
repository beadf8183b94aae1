/** Benchmarks that print a line of JSON for each figure. */
@NullMarked
package dev.weft.bench;

import org.jspecify.annotations.NullMarked;
