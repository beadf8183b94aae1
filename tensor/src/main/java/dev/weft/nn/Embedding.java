package dev.weft.nn;

import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Indexing;

/** Rows of a table, {@code weight} [rows, width], at integer indices [...]: [..., width]. */
public final class Embedding extends Module {
  /** Standard normal first values. */
  public Embedding(long rows, long width, Generator generator) {
    this(Init.normal(generator, rows, width));
  }

  /** Takes over a given table. */
  public Embedding(Tensor weight) {
    Tensor unused = registerParameter("weight", weight);
  }

  @Override
  protected Tensor forward(Tensor... inputs) {
    return Indexing.embedding(parameter("weight"), inputs[0]);
  }
}
