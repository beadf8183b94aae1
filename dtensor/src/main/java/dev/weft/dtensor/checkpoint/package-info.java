/**
 * Checkpoints that any mesh can load: each rank writes its parts as safetensors, an index is
 * committed last. See {@code docs/semantics/checkpoint.md}.
 */
@NullMarked
package dev.weft.dtensor.checkpoint;

import org.jspecify.annotations.NullMarked;
