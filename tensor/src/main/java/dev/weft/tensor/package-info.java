/**
 * Tensors: dtypes, devices, storages, strided views and the scope that owns native memory.
 * Operators live in {@link dev.weft.tensor.op}, gradients in {@link dev.weft.tensor.autograd}.
 */
@NullMarked
package dev.weft.tensor;

import org.jspecify.annotations.NullMarked;
