/**
 * A trainer for small language models over any factorisation of the world into data, fully sharded,
 * pipeline and tensor parallelism: {@code Train} is the program.
 */
@NullMarked
package dev.weft.examples.trainer;

import org.jspecify.annotations.NullMarked;
