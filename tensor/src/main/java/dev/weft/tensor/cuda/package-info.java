/**
 * CUDA: what is on the machine, devices, streams and events, the caching allocator, copies, and
 * kernels compiled at run time. Nothing here is needed, or loaded, by a program that uses the CPU
 * alone.
 */
@NullMarked
package dev.weft.tensor.cuda;

import org.jspecify.annotations.NullMarked;
