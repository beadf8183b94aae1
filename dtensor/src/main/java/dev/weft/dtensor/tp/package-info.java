/** Tensor-parallel styles: how a module's parameters are cut and its inputs and outputs placed. */
@NullMarked
package dev.weft.dtensor.tp;

import org.jspecify.annotations.NullMarked;
