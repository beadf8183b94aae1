package dev.weft.examples.reference;

/**
 * The shape of a {@link Gpt}.
 *
 * @param seed of the initial parameters
 * @param vocab tokens
 * @param dModel width of the residual stream
 * @param nHeads query heads
 * @param nKvHeads key and value heads, each of which {@code nHeads / nKvHeads} query heads share
 * @param nLayers blocks
 * @param dFf width of the feed-forward layers
 * @param seq the longest sequence
 * @param normEps what the norms add to the mean square
 * @param ropeTheta the base of the rotary angles
 * @param tied whether the output layer's matrix is the embedding's
 */
public record DecoderConfig(
    long seed,
    int vocab,
    int dModel,
    int nHeads,
    int nKvHeads,
    int nLayers,
    int dFf,
    int seq,
    double normEps,
    double ropeTheta,
    boolean tied) {
  /**
   * Checks the sizes.
   *
   * @throws IllegalArgumentException if one is below 1, or heads do not divide what they share
   */
  public DecoderConfig {
    check(vocab >= 2, "vocab", vocab, "2 or more");
    check(nHeads >= 1, "heads", nHeads, "1 or more");
    check(nKvHeads >= 1, "kv-heads", nKvHeads, "1 or more");
    check(nLayers >= 1, "layers", nLayers, "1 or more");
    check(dFf >= 1, "feed-forward", dFf, "1 or more");
    check(seq >= 1, "seq", seq, "1 or more");
    check(
        dModel >= 1 && dModel % (2 * nHeads) == 0,
        "width",
        dModel,
        "a multiple of twice the " + nHeads + " heads, whose features are rotated in pairs");
    check(nHeads % nKvHeads == 0, "kv-heads", nKvHeads, "a divisor of the " + nHeads + " heads");
    if (!(normEps >= 0) || !(ropeTheta > 0)) {
      throw new IllegalArgumentException(
          "normEps is "
              + normEps
              + " and ropeTheta "
              + ropeTheta
              + "; expected 0 or more, and more than 0");
    }
  }

  private static void check(boolean holds, String name, int value, String expected) {
    if (!holds) {
      throw new IllegalArgumentException(name + " is " + value + "; expected " + expected);
    }
  }

  /** The size of one attention head. */
  public int headSize() {
    return dModel / nHeads;
  }
}
