/** CPU kernels: loops staged through Java arrays, and OpenBLAS for matrix products. */
@NullMarked
package dev.weft.tensor.cpu;

import org.jspecify.annotations.NullMarked;
