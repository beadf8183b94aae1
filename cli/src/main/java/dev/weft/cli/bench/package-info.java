/** The benchmarks of the {@code weft bench} command, one class each. */
@NullMarked
package dev.weft.cli.bench;

import org.jspecify.annotations.NullMarked;
