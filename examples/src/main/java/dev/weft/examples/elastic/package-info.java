/** Training that survives the loss of ranks: {@code ElasticTraining}. */
@NullMarked
package dev.weft.examples.elastic;

import org.jspecify.annotations.NullMarked;
