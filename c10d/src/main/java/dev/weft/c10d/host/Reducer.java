package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Reduces for one group: what it computes in is kept from call to call while dtype and operation
 * stay the same. Used by one thread at a time.
 */
final class Reducer {
  private final int ranks;
  private @Nullable DType dtype;
  private @Nullable ReduceOp op;
  private @Nullable Lanes lanes;

  Reducer(int ranks) {
    this.ranks = ranks;
  }

  /** Reduces as {@link Lanes#reduce(DType, ReduceOp, long[], long, long)}. */
  void reduce(DType dtype, ReduceOp op, long[] sources, long numel, long target) {
    if (dtype != this.dtype || !op.equals(this.op)) {
      lanes = Lanes.of(dtype, op, ranks, Lanes.CHUNK);
      this.dtype = dtype;
      this.op = op;
    }
    Objects.requireNonNull(lanes).reduce(dtype.byteSize(), Lanes.CHUNK, sources, numel, target);
  }
}
