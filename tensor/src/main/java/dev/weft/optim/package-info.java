/** Optimisers, learning-rate schedules and gradient clipping. */
@NullMarked
package dev.weft.optim;

import org.jspecify.annotations.NullMarked;
