/**
 * Native memory: the allocator, its pool and its counters, and the raw reads and writes that
 * kernels use.
 */
@NullMarked
package dev.weft.tensor.memory;

import org.jspecify.annotations.NullMarked;
