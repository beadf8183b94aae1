package dev.weft.examples.reference;

import dev.weft.tensor.Tensor;

/** Batches of noisy class prototypes. */
public final class ClassBatches {
  private final MlpConfig config;
  private final NumberStream prototypes;
  private final NumberStream labels;
  private final NumberStream noise;
  private final NumberStream order;

  /** The data of a configuration. */
  public ClassBatches(MlpConfig config) {
    this.config = config;
    this.prototypes = new NumberStream(config.seed(), "data.proto");
    this.labels = new NumberStream(config.seed(), "data.label");
    this.noise = new NumberStream(config.seed(), "data.noise");
    this.order = new NumberStream(config.seed(), "data.batch");
  }

  /**
   * Rows of a step's batch.
   *
   * @param inputs float32 [rows, d_in]
   * @param labels int64 [rows]
   */
  public record Batch(Tensor inputs, Tensor labels) {}

  /** Rows [from, to) of the batch of a step. */
  public Batch rows(int step, int from, int to) {
    int width = config.dIn();
    float[] x = new float[(to - from) * width];
    long[] y = new long[to - from];
    for (int row = from; row < to; row++) {
      long sample = order.below((long) step * config.batch() + row, config.nSamples());
      long label = labels.below(sample, config.nClasses());
      y[row - from] = label;
      for (int j = 0; j < width; j++) {
        x[(row - from) * width + j] =
            0.125f * prototypes.symmetric(label * width + j) + noise.symmetric(sample * width + j);
      }
    }
    return new Batch(Tensor.of(x, to - from, width), Tensor.of(y, to - from));
  }
}
