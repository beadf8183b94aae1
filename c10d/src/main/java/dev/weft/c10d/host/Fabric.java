package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * A message-passing library between the ranks of one world, under this package's order of calls,
 * checks, matching of messages and timeouts; see {@link FabricBackends}. Thread-safe, but for what
 * is said below. Nothing waits but {@link #group}.
 */
public interface Fabric extends AutoCloseable {
  /** The library in a message, such as {@code Open MPI 4.1.4}. */
  String describe();

  /** The most bytes that {@link #send} takes. */
  int chunk();

  /** Starts to send bytes to a rank, by global rank; those of two calls arrive in order. */
  Transfer send(int globalRank, long address, int bytes);

  /**
   * Receives what one {@link #send} sent here, if something has come. One thread calls it.
   *
   * @param into a direct buffer of at least {@link #chunk} bytes; its limit is set
   * @return the sender's global rank, or -1 when nothing has come
   */
  int receive(ByteBuffer into);

  /**
   * Makes the collectives of a group; all members are known to call it now.
   *
   * @param name the same on all members, and no other group's
   * @param ranks global ranks, in group-rank order
   */
  FabricGroup group(String name, List<Integer> ranks);

  @Override
  void close();

  /** Something under way, whose memory must stay until it is done. */
  interface Transfer {
    /** Carries it on; true when it is done. */
    boolean isDone();
  }

  /**
   * Collectives over row-major memory, counted in elements. Called by one thread at a time, in the
   * same order on all members; inputs and outputs do not overlap. The reductions are SUM, PRODUCT,
   * MIN, MAX (which propagate NaN) and the bitwise ones, never of 16-bit floating-point elements.
   */
  interface FabricGroup extends AutoCloseable {
    /** Reduces in place. */
    Transfer allReduce(DType dtype, ReduceOp op, long address, long count);

    /** Reduces to the root's memory, in place there. */
    Transfer reduce(DType dtype, ReduceOp op, long address, long count, int root);

    /** Copies the root's memory to all. */
    Transfer broadcast(DType dtype, long address, long count, int root);

    /** Collects parts, one a rank, one after the other. */
    Transfer allGather(DType dtype, long input, long output, long[] counts);

    /** Reduces parts, one a rank, each to its rank. */
    Transfer reduceScatter(DType dtype, ReduceOp op, long input, long[] counts, long output);

    /** Exchanges parts, one a rank, which lie one after the other. */
    Transfer allToAll(
        DType dtype, long input, long[] inputCounts, long output, long[] outputCounts);

    /** Collects parts at the root; the output is not looked at elsewhere. */
    Transfer gather(DType dtype, long input, long count, long output, long[] counts, int root);

    /** Distributes the root's parts; the input is not looked at elsewhere. */
    Transfer scatter(DType dtype, long input, long[] counts, long output, long count, int root);

    @Override
    void close();
  }
}
