package dev.weft.dtensor;

import dev.weft.c10d.RankContext;
import dev.weft.tensor.Generator;

/** The random stream of distributed tensors, one for each rank. */
final class RankRandom implements AutoCloseable {
  private final Generator generator = new Generator(0);

  private RankRandom() {}

  static Generator current() {
    return RankContext.current().resource(RankRandom.class, RankRandom::new).generator;
  }

  @Override
  public void close() {}
}
