/**
 * Looks after a training run while nothing has failed yet: ranks that are slow, numbers that are
 * not finite, replicas that are no longer equal.
 */
@NullMarked
package dev.weft.parallel.health;

import org.jspecify.annotations.NullMarked;
