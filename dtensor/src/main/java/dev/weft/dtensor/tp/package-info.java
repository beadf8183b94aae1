/**
 * Ways to make a model parallel: tensor-parallel styles, which say how a module's parameters are
 * cut and its inputs and outputs placed, context parallelism, and experts spread over ranks.
 */
@NullMarked
package dev.weft.dtensor.tp;

import org.jspecify.annotations.NullMarked;
