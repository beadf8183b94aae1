/** The operator catalogue and the dispatcher that every call goes through. */
@NullMarked
package dev.weft.tensor.op;

import org.jspecify.annotations.NullMarked;
