package dev.weft.examples.reference;

import dev.weft.tensor.Tensor;

/** Batches of byte sequences from a text, at positions that the step number determines. */
public final class TextBatches {
  private final byte[] text;
  private final GptConfig config;
  private final NumberStream positions;

  /**
   * Batches from a text.
   *
   * @param text longer than the sequence length by at least two bytes
   */
  public TextBatches(byte[] text, GptConfig config) {
    if (text.length < config.seq() + 2) {
      throw new IllegalArgumentException(
          "text has " + text.length + " bytes; expected at least " + (config.seq() + 2));
    }
    this.text = text;
    this.config = config;
    this.positions = new NumberStream(config.seed(), "data.batch");
  }

  /** The text that comes with the examples. */
  public static byte[] corpus() {
    return Resources.bytes("corpus.txt");
  }

  /**
   * Rows of a step's batch.
   *
   * @param inputs int64 [rows, seq]
   * @param targets int64 [rows, seq]: the bytes that follow
   */
  public record Batch(Tensor inputs, Tensor targets) {}

  /** Rows [from, to) of the batch of a step. */
  public Batch rows(int step, int from, int to) {
    int seq = config.seq();
    long[] inputs = new long[(to - from) * seq];
    long[] targets = new long[inputs.length];
    for (int row = from; row < to; row++) {
      int start = (int) positions.below((long) step * config.batch() + row, text.length - seq);
      for (int i = 0; i < seq; i++) {
        inputs[(row - from) * seq + i] = text[start + i] & 0xff;
        targets[(row - from) * seq + i] = text[start + i + 1] & 0xff;
      }
    }
    return new Batch(Tensor.of(inputs, to - from, seq), Tensor.of(targets, to - from, seq));
  }
}
