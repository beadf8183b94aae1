package dev.weft.c10d;

import dev.weft.tensor.StridedTensor;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What moves the data of one process group on one device type. {@link ProcessGroup} calls it from
 * any thread with arguments that are checked already (devices, dtypes, sizes, ranks of the group)
 * and whose pending data has arrived; calls of a group come in the order that the rank makes them.
 *
 * <p>Every operation writes its outputs in place and returns a {@link Work}; a synchronous one
 * ({@link CollectiveOptions#async} is false) is done, or has thrown, when the call returns. All
 * ranks are group ranks.
 */
public interface Backend extends AutoCloseable {
  /** Its name, such as {@code host}. */
  String name();

  /** Reduces a tensor over all ranks, in place. */
  Work allReduce(StridedTensor tensor, ReduceOp op, CollectiveOptions options);

  /** Copies the root's tensor to all ranks. */
  Work broadcast(StridedTensor tensor, int root, CollectiveOptions options);

  /** Reduces a tensor over all ranks to the root's. */
  Work reduce(StridedTensor tensor, int root, ReduceOp op, CollectiveOptions options);

  /** Collects every rank's input; sizes may differ between ranks. */
  Work allGather(List<StridedTensor> outputs, StridedTensor input, CollectiveOptions options);

  /** Collects every rank's input, one after the other, in one tensor. */
  Work allGatherIntoTensor(StridedTensor output, StridedTensor input, CollectiveOptions options);

  /** Reduces the inputs of a position over all ranks to the rank of that position. */
  Work reduceScatter(
      StridedTensor output, List<StridedTensor> inputs, ReduceOp op, CollectiveOptions options);

  /** The same with one input that is the concatenation. */
  Work reduceScatterTensor(
      StridedTensor output, StridedTensor input, ReduceOp op, CollectiveOptions options);

  /** Sends the input of each position to that rank. */
  Work allToAll(List<StridedTensor> outputs, List<StridedTensor> inputs, CollectiveOptions options);

  /** The same with rows of one tensor; the splits are numbers of rows per rank. */
  Work allToAllSingle(
      StridedTensor output,
      StridedTensor input,
      long[] outputSplits,
      long[] inputSplits,
      CollectiveOptions options);

  /** Collects every rank's input at the root; outputs are null elsewhere. */
  Work gather(
      StridedTensor input,
      @Nullable List<StridedTensor> outputs,
      int root,
      CollectiveOptions options);

  /** Distributes the root's inputs; they are null elsewhere. */
  Work scatter(
      StridedTensor output,
      @Nullable List<StridedTensor> inputs,
      int root,
      CollectiveOptions options);

  /** Returns when all ranks have called it. */
  Work barrier(CollectiveOptions options);

  /** Sends a tensor to a rank; posting an asynchronous send never blocks. */
  Work send(StridedTensor tensor, int destination, int tag, CollectiveOptions options);

  /** Receives from a rank, or from any for {@link ProcessGroup#ANY_SOURCE}. */
  Work receive(StridedTensor tensor, int source, int tag, CollectiveOptions options);

  /** Ends everything under way, and everything to come, with this failure. */
  void abort(Throwable cause);

  /** Waits for what is under way, at most {@code timeout}, and lets everything go. */
  void close(Duration timeout);

  /** Closes with a short timeout. */
  @Override
  default void close() {
    close(Duration.ofSeconds(5));
  }
}
