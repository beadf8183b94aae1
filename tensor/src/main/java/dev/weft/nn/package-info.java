/** Modules: trees of named parameters with a forward computation and hooks. */
@NullMarked
package dev.weft.nn;

import org.jspecify.annotations.NullMarked;
