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

  /**
   * By which way and algorithms data is moved, in a few words for traces and reports, such as
   * {@code shared memory}; empty where that is not known, or not yet.
   */
  default String algorithm() {
    return "";
  }

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

  /** The same where all splits of all ranks are equal. */
  default Work allToAllEven(
      StridedTensor output,
      StridedTensor input,
      long[] outputSplits,
      long[] inputSplits,
      CollectiveOptions options) {
    return allToAllSingle(output, input, outputSplits, inputSplits, options);
  }

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

  /**
   * From now on, asynchronous operations of this thread may be put off until {@link
   * #endCoalescing}, to be launched together; their works must not be awaited before. Where it does
   * nothing, they are launched one by one.
   */
  default void startCoalescing() {}

  /** Launches what was put off. */
  default void endCoalescing() {}

  /**
   * Whether its own connections can make those of a part of the group. It is the same on all ranks
   * after the same operations.
   */
  default boolean canDivide() {
    return false;
  }

  /**
   * Makes the backends of disjoint parts of the group; all ranks of the group call it.
   *
   * @param part this rank's part, or null where it is in none
   * @param color the number of the part, the same on its ranks and different from others'
   * @param key orders the ranks of a part
   * @return the part's backend, or null where this rank is in none
   */
  default @Nullable Backend split(@Nullable GroupContext part, int color, int key) {
    throw new UnsupportedOperationException("backend '" + name() + "' cannot be split");
  }

  /** Whether {@link #shrink} may be called; also after failures. */
  default boolean canShrink() {
    return false;
  }

  /**
   * Makes the backend of the ranks that are left without some; only these call it.
   *
   * @param rest the group of the ranks that are left
   * @param excluded group ranks of the others
   * @param abort whether operations under way are given up first
   */
  default Backend shrink(GroupContext rest, int[] excluded, boolean abort) {
    throw new UnsupportedOperationException("backend '" + name() + "' cannot be shrunk");
  }

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
