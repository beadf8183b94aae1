package dev.weft.examples.trainer;

import dev.weft.tensor.Tensor;

/** Samples as tensors. Any thread. */
final class TokenBatches {
  private final TokenSource tokens;
  private final int seq;
  private final Sampler sampler;

  TokenBatches(TokenSource tokens, int seq, Sampler sampler) {
    this.tokens = tokens;
    this.seq = seq;
    this.sampler = sampler;
  }

  /**
   * Samples of the training data.
   *
   * @param inputs int64 [rows, seq]
   * @param targets int64 [rows, seq]: the tokens that follow
   */
  record Batch(Tensor inputs, Tensor targets) {}

  /** Samples {@code first} and those after it. */
  Batch rows(long first, int count) {
    long[] inputs = new long[count * seq];
    long[] targets = new long[count * seq];
    long[] window = new long[seq + 1];
    for (int row = 0; row < count; row++) {
      tokens.read(sampler.start(first + row), window, 0, seq + 1);
      System.arraycopy(window, 0, inputs, row * seq, seq);
      System.arraycopy(window, 1, targets, row * seq, seq);
    }
    return new Batch(Tensor.of(inputs, count, seq), Tensor.of(targets, count, seq));
  }
}
