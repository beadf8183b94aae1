package dev.weft.dtensor;

/**
 * A tensor dimension seen as equal pieces, each of which is cut into contiguous chunks: a rank
 * holds its chunk of every piece, one after the other. Flattening leaves it where a dimension
 * behind others was cut; the chunks of a piece follow the rules of {@link Shard}.
 *
 * @param dim the tensor dimension
 * @param pieces how many pieces, at least 2; PyTorch's split factor
 */
public record StridedShard(int dim, int pieces) implements Placement {
  @Override
  public String toString() {
    return "SS(" + dim + "," + pieces + ")";
  }
}
