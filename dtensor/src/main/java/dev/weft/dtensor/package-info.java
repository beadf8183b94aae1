/**
 * Distributed tensors: a global tensor placed on a device mesh. Placements, layouts, redistribution
 * and sharding propagation; see {@code docs/semantics}.
 */
@NullMarked
package dev.weft.dtensor;

import org.jspecify.annotations.NullMarked;
