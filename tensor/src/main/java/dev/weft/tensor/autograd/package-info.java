/** The autograd graph: nodes, saved tensors, hooks and the backward engine. */
@NullMarked
package dev.weft.tensor.autograd;

import org.jspecify.annotations.NullMarked;
