package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * What a rank calls: everything that must fit between the ranks before data moves. Immutable.
 *
 * @param operation such as {@code all_reduce}
 * @param dtype of the data, or null where there is none
 * @param reduceOp its text, empty where nothing is reduced
 * @param root group rank, or -1
 * @param shape of the tensor that must look the same everywhere, or null
 * @param sent elements sent to each rank (one number: to all the same), or null
 * @param received elements expected of each rank (one number: of all the same), or null
 */
record Signature(
    String operation,
    @Nullable DType dtype,
    String reduceOp,
    int root,
    long @Nullable [] shape,
    long @Nullable [] sent,
    long @Nullable [] received) {

  static final long[] NOTHING = {};

  /** The call in words; the root as a global rank. */
  String describe(int[] globalRanks) {
    StringBuilder text = new StringBuilder(operation);
    StringBuilder arguments = new StringBuilder(reduceOp);
    if (root >= 0) {
      arguments.append(arguments.isEmpty() ? "" : ", ").append("root=").append(global(globalRanks));
    }
    if (!arguments.isEmpty()) {
      text.append('(').append(arguments).append(')');
    }
    if (dtype != null) {
      text.append(" of ").append(dtype).append(shape == null ? "" : Arrays.toString(shape));
    }
    return text.toString();
  }

  private String global(int[] globalRanks) {
    // A root that is out of range on another rank is still worth showing.
    return root < globalRanks.length ? String.valueOf(globalRanks[root]) : "group rank " + root;
  }

  /** Whether it says dtype, reduction and shape of a call. */
  boolean isOf(StridedTensor t, ReduceOp op) {
    long[] there = shape;
    return there != null
        && dtype == t.dtype()
        && reduceOp.equals(op.toString())
        && Arrays.equals(t.shape(), there);
  }

  /** Whether another says the very same. */
  boolean isSameAs(@Nullable Signature other) {
    return other != null
        && operation.equals(other.operation)
        && dtype == other.dtype
        && reduceOp.equals(other.reduceOp)
        && root == other.root
        && Arrays.equals(shape, other.shape)
        && Arrays.equals(sent, other.sent)
        && Arrays.equals(received, other.received);
  }

  long sentTo(int rank) {
    long[] all = sent == null ? NOTHING : sent;
    return all.length == 1 ? all[0] : all[rank];
  }

  long receivedFrom(int rank) {
    long[] all = received == null ? NOTHING : received;
    return all.length == 1 ? all[0] : all[rank];
  }
}
