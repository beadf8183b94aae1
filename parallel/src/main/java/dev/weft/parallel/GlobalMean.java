package dev.weft.parallel;

import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Pointwise;

/**
 * The mean of a loss over what counts on all ranks, where ranks have different numbers of it: valid
 * tokens, say, of sequences that are padded. The mean of the ranks' own means would give the tokens
 * of a rank with few of them more weight.
 */
public final class GlobalMean {
  private GlobalMean() {}

  /**
   * A loss to run backward from where gradients are then averaged over the ranks, as {@link Ddp}
   * and {@link FullySharded} do. The host waits for the ranks' counts.
   *
   * @param sum the sum of the losses of what counts on this rank: one element
   * @param count how many count on this rank; 0 is fine unless it is so everywhere
   * @param group the ranks that gradients are averaged over; all call alike
   * @return {@code sum} times the number of ranks over the number of all that count; its average
   *     over the ranks is the global mean
   */
  public static Tensor of(Tensor sum, long count, ProcessGroup group) {
    if (sum.numel() != 1 || count < 0) {
      throw new IllegalArgumentException(
          "GlobalMean: sum is "
              + sum.describe()
              + " and count "
              + count
              + "; expected one element, and 0 or more");
    }
    long all;
    try (TensorScope scope = TensorScope.open()) {
      Tensor counts = Tensor.of(new long[] {count}, 1).to(group.controlDevice());
      Work unused = group.allReduce(counts, ReduceOp.SUM);
      all = counts.toLongArray()[0];
    }
    if (all == 0) {
      throw new IllegalArgumentException("GlobalMean: nothing counts on any rank");
    }
    return Pointwise.mul(sum, (double) group.size() / all);
  }
}
