/** Ways of training in parallel that wrap a whole model. */
@NullMarked
package dev.weft.parallel;

import org.jspecify.annotations.NullMarked;
