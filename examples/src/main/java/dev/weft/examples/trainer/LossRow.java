package dev.weft.examples.trainer;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * What a step gave, the same on all ranks.
 *
 * @param step from 1
 * @param tokens seen up to and with this step
 * @param loss the mean over the whole batch, before the update, in nats per token
 * @param gradNorm the norm of the gradient over all ranks, before clipping
 * @param learningRate of the update
 * @param tokensPerSecond of this step, over all ranks
 * @param evalLoss the mean over the held-out batches after the update, where there was an
 *     evaluation
 */
public record LossRow(
    long step,
    long tokens,
    double loss,
    double gradNorm,
    double learningRate,
    double tokensPerSecond,
    @Nullable Double evalLoss) {
  static final String HEADER =
      "step,tokens,loss,grad_norm,learning_rate,tokens_per_second,eval_loss";

  /** A line of {@code losses.csv}; numbers are written so that they are read back exactly. */
  String toCsv() {
    return step
        + ","
        + tokens
        + ","
        + loss
        + ","
        + gradNorm
        + ","
        + learningRate
        + ","
        + String.format(Locale.ROOT, "%.1f", tokensPerSecond)
        + ","
        + (evalLoss == null ? "" : evalLoss);
  }

  /** With the result of an evaluation. */
  LossRow withEvalLoss(@Nullable Double loss) {
    return new LossRow(step, tokens, this.loss, gradNorm, learningRate, tokensPerSecond, loss);
  }

  /** Reads a line. */
  static LossRow parse(String line) {
    String[] cells = line.split(",", -1);
    if (cells.length != 7) {
      throw new IllegalArgumentException("'" + line + "'; expected the columns " + HEADER);
    }
    return new LossRow(
        Long.parseLong(cells[0]),
        Long.parseLong(cells[1]),
        Double.parseDouble(cells[2]),
        Double.parseDouble(cells[3]),
        Double.parseDouble(cells[4]),
        Double.parseDouble(cells[5]),
        cells[6].isEmpty() ? null : Double.valueOf(cells[6]));
  }
}
