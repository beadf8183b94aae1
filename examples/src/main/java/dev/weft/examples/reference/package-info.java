/**
 * The two reference models with deterministic weights and data, whose losses are known for every
 * parallel layout, and the demo that trains one of them.
 */
@NullMarked
package dev.weft.examples.reference;

import org.jspecify.annotations.NullMarked;
