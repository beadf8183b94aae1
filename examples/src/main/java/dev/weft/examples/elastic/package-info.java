/** Training that survives the loss of ranks: {@code ElasticTraining} and its checkpoints. */
@NullMarked
package dev.weft.examples.elastic;

import org.jspecify.annotations.NullMarked;
