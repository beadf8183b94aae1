package dev.weft.dtensor;

/**
 * A tensor dimension cut into contiguous chunks of ceil(size / ranks); the last chunks may be
 * shorter or empty. Where several mesh dimensions cut one tensor dimension, each cuts what the ones
 * before it have left.
 *
 * @param dim the tensor dimension; negative ones are resolved when a tensor is placed
 */
public record Shard(int dim) implements Placement {
  @Override
  public String toString() {
    return "S(" + dim + ")";
  }
}
