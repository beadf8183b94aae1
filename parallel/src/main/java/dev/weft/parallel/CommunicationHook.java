package dev.weft.parallel;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.InPlace;
import java.util.function.Supplier;

/**
 * How {@link Ddp} averages a bucket of gradients over the ranks. All ranks use the same one. Called
 * in backward, by the thread that acts for the rank, with nothing recorded.
 */
@FunctionalInterface
public interface CommunicationHook {
  /**
   * Starts the reduction and returns without waiting for it.
   *
   * @return called once, before the gradients are read: waits and gives as many elements as the
   *     bucket has, of any floating-point dtype; they are freed once they have been copied
   */
  Supplier<? extends Tensor> start(GradientBucket bucket);

  /** The average, in the gradients' own dtype. */
  static CommunicationHook allReduce() {
    return bucket -> {
      Work work = bucket.group().allReduce(bucket.buffer(), ReduceOp.AVG, CollectiveOptions.ASYNC);
      return () -> {
        work.await();
        return bucket.buffer();
      };
    };
  }

  /**
   * The average of gradients that are divided by the number of ranks, sent in a lower precision and
   * brought back to their own.
   *
   * @param dtype float16 or bfloat16
   */
  static CommunicationHook compress(DType dtype) {
    if (dtype != DType.FLOAT16 && dtype != DType.BFLOAT16) {
      throw new IllegalArgumentException(
          "compress: dtype " + dtype + " is no lower precision; expected float16 or bfloat16");
    }
    return bucket -> {
      // Divided first: a sum of many float16 gradients could overflow.
      Tensor unused = InPlace.mul(bucket.buffer(), 1.0 / bucket.group().size());
      StridedTensor low = (StridedTensor) bucket.buffer().to(dtype);
      Work work = bucket.group().allReduce(low, ReduceOp.SUM, CollectiveOptions.ASYNC);
      return () -> {
        work.await();
        return low;
      };
    };
  }
}
