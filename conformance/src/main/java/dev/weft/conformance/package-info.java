/**
 * Runs the golden cases: data recorded from the reference implementation, and the rules by which a
 * result counts as right.
 */
@NullMarked
package dev.weft.conformance;

import org.jspecify.annotations.NullMarked;
