package dev.weft.dtensor;

/**
 * How a tensor lies along one mesh dimension: cut ({@link Shard}, {@link StridedShard}), whole on
 * every rank ({@link Replicate}) or as contributions that are still to be reduced ({@link
 * Partial}). Immutable.
 */
public sealed interface Placement permits Shard, StridedShard, Replicate, Partial {
  /** True for a shard. */
  default boolean isShard() {
    return shardDim() >= 0;
  }

  /** True for a shard of one tensor dimension. */
  default boolean isShard(int dim) {
    return dim >= 0 && shardDim() == dim;
  }

  /** The tensor dimension that is cut, or -1. */
  default int shardDim() {
    return this instanceof Shard s ? s.dim() : this instanceof StridedShard t ? t.dim() : -1;
  }

  /** True where every rank holds all. */
  default boolean isReplicate() {
    return this instanceof Replicate;
  }

  /** True where a reduction is outstanding. */
  default boolean isPartial() {
    return this instanceof Partial;
  }
}
