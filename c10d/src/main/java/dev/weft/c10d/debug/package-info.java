/**
 * What tells why a job hangs or fails: the flight recorder that keeps the last calls of a rank, its
 * dumps, which PyTorch's tools read, and the analyzer that puts the dumps of all ranks side by
 * side.
 */
@NullMarked
package dev.weft.c10d.debug;

import org.jspecify.annotations.NullMarked;
