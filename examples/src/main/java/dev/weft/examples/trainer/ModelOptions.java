package dev.weft.examples.trainer;

import dev.weft.examples.reference.DecoderConfig;
import picocli.CommandLine.Option;

/** The model's shape; the defaults are the reference's. */
final class ModelOptions {
  @Option(
      names = "--layers",
      paramLabel = "N",
      description = "blocks of attention and feed-forward (default: ${DEFAULT-VALUE})")
  int layers = 2;

  @Option(
      names = "--width",
      paramLabel = "N",
      description = "width of the residual stream (default: ${DEFAULT-VALUE})")
  int width = 64;

  @Option(
      names = "--heads",
      paramLabel = "N",
      description = "query heads (default: ${DEFAULT-VALUE})")
  int heads = 4;

  @Option(
      names = "--kv-heads",
      paramLabel = "N",
      description = "key and value heads, a divisor of the query heads (default: as many as those)")
  int kvHeads;

  @Option(
      names = "--feed-forward",
      paramLabel = "N",
      description = "width of the feed-forward layers (default: 2.75 times the width)")
  int feedForward;

  @Option(
      names = "--tied",
      description = "the output layer's matrix is the embedding's; not with a pipeline")
  boolean tied;

  @Option(
      names = "--rope-theta",
      paramLabel = "X",
      description = "base of the rotary angles (default: ${DEFAULT-VALUE})")
  double ropeTheta = 10_000;

  @Option(
      names = "--norm-eps",
      paramLabel = "X",
      description = "what RMS norms add to the mean square (default: ${DEFAULT-VALUE})")
  double normEps = 1e-5;

  /** The model for so many tokens and positions. */
  DecoderConfig config(int vocab, int seq, long seed) {
    return new DecoderConfig(
        seed,
        vocab,
        width,
        heads,
        kvHeads == 0 ? heads : kvHeads,
        layers,
        feedForward == 0 ? width * 11 / 4 : feedForward,
        seq,
        normEps,
        ropeTheta,
        tied);
  }
}
