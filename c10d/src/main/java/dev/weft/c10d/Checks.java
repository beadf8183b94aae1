package dev.weft.c10d;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Checks of a collective's arguments on the calling rank; each failure names the argument. */
final class Checks {
  private Checks() {}

  static StridedTensor plain(String operation, String argument, Tensor tensor) {
    if (tensor instanceof StridedTensor t) {
      return t;
    }
    throw new IllegalArgumentException(
        operation
            + ": "
            + argument
            + " ("
            + tensor.describe()
            + ") is a "
            + tensor.getClass().getSimpleName()
            + "; expected a plain tensor (of a distributed one, pass the local part)");
  }

  static List<StridedTensor> plainList(
      String operation, String argument, List<? extends Tensor> tensors, int size) {
    if (tensors.size() != size) {
      throw new IllegalArgumentException(
          operation
              + ": "
              + argument
              + " has "
              + tensors.size()
              + " tensors; expected one for each of the "
              + size
              + " ranks");
    }
    List<StridedTensor> out = new ArrayList<>(size);
    for (int i = 0; i < size; i++) {
      out.add(plain(operation, argument + "[" + i + "]", tensors.get(i)));
    }
    return out;
  }

  static @Nullable List<StridedTensor> rootList(
      String operation,
      String argument,
      @Nullable List<? extends Tensor> tensors,
      int root,
      ProcessGroup group) {
    if (group.rank() == root) {
      if (tensors == null) {
        throw new IllegalArgumentException(
            operation
                + ": "
                + argument
                + " is null on the root, group rank "
                + root
                + "; expected a tensor for each rank");
      }
      return plainList(operation, argument, tensors, group.size());
    }
    if (tensors != null && !tensors.isEmpty()) {
      throw new IllegalArgumentException(
          operation
              + ": "
              + argument
              + " is given on group rank "
              + group.rank()
              + "; expected null on all ranks but the root, "
              + root);
    }
    return null;
  }

  static void sameKind(
      String operation, String argument, List<StridedTensor> tensors, StridedTensor as) {
    for (int i = 0; i < tensors.size(); i++) {
      StridedTensor t = tensors.get(i);
      if (t.dtype() != as.dtype() || !t.device().equals(as.device())) {
        String which = tensors.size() == 1 ? argument : argument + "[" + i + "]";
        throw new IllegalArgumentException(
            operation
                + ": "
                + which
                + " is "
                + t.describe()
                + "; expected dtype "
                + as.dtype()
                + " on "
                + as.device()
                + " as of "
                + as.describe());
      }
    }
  }

  static void numel(String operation, String argument, StridedTensor t, long expected) {
    if (t.numel() != expected) {
      throw new IllegalArgumentException(
          operation
              + ": "
              + argument
              + " ("
              + t.describe()
              + ") has "
              + t.numel()
              + " elements; expected "
              + expected);
    }
  }

  static void reducible(String operation, ReduceOp op, StridedTensor t) {
    DType dtype = t.dtype();
    boolean bitwise =
        switch (op.kind()) {
          case BAND, BOR, BXOR -> true;
          default -> false;
        };
    boolean fractional = op.kind() == ReduceOp.Kind.AVG || op.kind() == ReduceOp.Kind.PREMUL_SUM;
    if (bitwise && dtype.isFloatingPoint()) {
      throw new IllegalArgumentException(
          operation
              + ": reduce op "
              + op
              + " does not work on dtype "
              + dtype
              + "; expected an integer type or bool");
    }
    if (fractional && !dtype.isFloatingPoint()) {
      throw new IllegalArgumentException(
          operation
              + ": reduce op "
              + op
              + " does not work on dtype "
              + dtype
              + "; expected a floating-point type");
    }
  }

  static void peer(String operation, String argument, int rank, ProcessGroup group) {
    if (rank < 0 || rank >= group.size()) {
      throw new IllegalArgumentException(
          operation
              + ": "
              + argument
              + " is group rank "
              + rank
              + "; expected 0 to "
              + (group.size() - 1)
              + " in group "
              + group.describe());
    }
  }

  static void otherPeer(String operation, String argument, int rank, ProcessGroup group) {
    peer(operation, argument, rank, group);
    if (rank == group.rank()) {
      throw new IllegalArgumentException(
          operation
              + ": "
              + argument
              + " is this rank itself, group rank "
              + rank
              + "; expected another rank");
    }
  }

  static void tag(String operation, int tag) {
    if (tag < 0) {
      throw new IllegalArgumentException(operation + ": tag is " + tag + "; expected zero or more");
    }
  }

  static long[] splits(
      String argument, long @Nullable [] splits, String name, StridedTensor t, int size) {
    String operation = "all_to_all_single: ";
    if (t.ndim() == 0) {
      throw new IllegalArgumentException(
          operation + name + " has no dimension to split; expected at least one");
    }
    long rows = t.shape()[0];
    if (splits == null || splits.length == 0) {
      if (rows % size != 0) {
        throw new IllegalArgumentException(
            operation
                + name
                + " has "
                + rows
                + " rows, which do not divide by the group's "
                + size
                + " ranks; give "
                + argument);
      }
      long[] even = new long[size];
      Arrays.fill(even, rows / size);
      return even;
    }
    long sum = 0;
    for (long s : splits) {
      if (s < 0) {
        throw new IllegalArgumentException(
            operation + argument + " " + Arrays.toString(splits) + " has a negative number");
      }
      sum += s;
    }
    if (splits.length != size || sum != rows) {
      throw new IllegalArgumentException(
          operation
              + argument
              + " is "
              + Arrays.toString(splits)
              + "; expected "
              + size
              + " numbers of rows whose sum is the size of "
              + name
              + " along dimension 0, "
              + rows);
    }
    return splits.clone();
  }

  static void sameRows(String operation, StridedTensor out, StridedTensor in) {
    if (rowSize(out) != rowSize(in)) {
      throw new IllegalArgumentException(
          operation
              + ": output "
              + out.describe()
              + " and input "
              + in.describe()
              + " differ in the size of a row; expected the same");
    }
  }

  private static long rowSize(StridedTensor t) {
    long n = 1;
    for (int i = 1; i < t.ndim(); i++) {
      n *= t.shape()[i];
    }
    return n;
  }
}
