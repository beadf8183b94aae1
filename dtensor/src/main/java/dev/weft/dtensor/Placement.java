package dev.weft.dtensor;

/**
 * How a tensor lies along one mesh dimension: cut ({@link Shard}), whole on every rank ({@link
 * Replicate}) or as contributions that are still to be reduced ({@link Partial}). Immutable.
 */
public sealed interface Placement permits Shard, Replicate, Partial {
  /** True for a shard. */
  default boolean isShard() {
    return this instanceof Shard;
  }

  /** True for a shard of one tensor dimension. */
  default boolean isShard(int dim) {
    return this instanceof Shard s && s.dim() == dim;
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
