/** Runs recorded cases of {@code torch.distributed} on a world of threads. */
@NullMarked
package dev.weft.c10d.conformance;

import org.jspecify.annotations.NullMarked;
