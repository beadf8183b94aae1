/**
 * Functional collectives: they leave their inputs alone and return a tensor whose data is awaited
 * by whoever reads it first.
 */
@NullMarked
package dev.weft.funcol;

import org.jspecify.annotations.NullMarked;
