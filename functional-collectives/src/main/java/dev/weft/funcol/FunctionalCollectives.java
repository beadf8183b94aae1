package dev.weft.funcol;

import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Dispatcher;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Collectives that leave their inputs alone and return at once; the result is an {@link
 * AsyncCollectiveTensor}, which whoever reads it first awaits. All ranks of the group make the same
 * calls in the same order, each from the thread that acts for it. Do not change an input in place
 * until the result has been awaited.
 *
 * <p>All are differentiable: the gradient of an all-gather is a reduce-scatter and the other way
 * round, of an all-reduce an all-reduce, of an all-to-all its inverse. Reductions are
 * differentiable for sums only. Ranks, splits and the order of chunks count in ranks of the group.
 */
public final class FunctionalCollectives {
  private FunctionalCollectives() {}

  /**
   * The reduction of all ranks' tensors, on every rank.
   *
   * @param tensor any shape and dtype that the reduction takes; the same on all ranks
   */
  public static Tensor allReduce(Tensor tensor, ReduceOp op, ProcessGroup group) {
    requireSum("all_reduce", op, tensor);
    return Dispatcher.call(FuncolOps.ALL_REDUCE, Attrs.of(op, group), tensor);
  }

  /** The same, with PyTorch's name of the reduction. */
  public static Tensor allReduce(Tensor tensor, String op, ProcessGroup group) {
    return allReduce(tensor, ReduceOp.of(op), group);
  }

  /** The reduction of several tensors. */
  public static List<Tensor> allReduceCoalesced(
      List<Tensor> tensors, ReduceOp op, ProcessGroup group) {
    if (Coalesced.fits(tensors)) {
      tensors.forEach(t -> requireSum("all_reduce", op, t));
      return List.of(Dispatcher.callAll(Coalesced.ALL_REDUCE, Attrs.of(op, group), array(tensors)));
    }
    List<Tensor> out = new ArrayList<>();
    for (Tensor t : tensors) {
      out.add(allReduce(t, op, group));
    }
    return out;
  }

  /**
   * All ranks' tensors, concatenated along a dimension in the order of the group.
   *
   * @param tensor at least one dimension; the same shape on all ranks
   * @param gatherDim negative ones count from the end
   */
  public static Tensor allGatherTensor(Tensor tensor, int gatherDim, ProcessGroup group) {
    if (tensor.ndim() == 0) {
      throw new IllegalArgumentException(
          "allGatherTensor: the tensor has no dimensions; expected at least one");
    }
    int dim = Shapes.dim(gatherDim, tensor.ndim());
    return Dispatcher.call(FuncolOps.ALL_GATHER, Attrs.of(dim, group), tensor);
  }

  /** {@link #allGatherTensor}, under the name that says that its gradient is a reduce-scatter. */
  public static Tensor allGatherTensorAutograd(Tensor tensor, int gatherDim, ProcessGroup group) {
    return allGatherTensor(tensor, gatherDim, group);
  }

  /** All ranks' tensors along dimension 0, for several tensors. */
  public static List<Tensor> allGatherTensorCoalesced(List<Tensor> tensors, ProcessGroup group) {
    if (Coalesced.fits(tensors) && tensors.stream().allMatch(t -> t.ndim() > 0)) {
      return List.of(Dispatcher.callAll(Coalesced.ALL_GATHER, Attrs.of(group), array(tensors)));
    }
    List<Tensor> out = new ArrayList<>();
    for (Tensor t : tensors) {
      out.add(allGatherTensor(t, 0, group));
    }
    return out;
  }

  /**
   * This rank's part, along a dimension, of the reduction of all ranks' tensors.
   *
   * @param tensor the same shape on all ranks; its size along the dimension is a multiple of the
   *     group's
   */
  public static Tensor reduceScatterTensor(
      Tensor tensor, ReduceOp op, int scatterDim, ProcessGroup group) {
    int dim = checkScatter(tensor, op, scatterDim, group);
    return Dispatcher.call(FuncolOps.REDUCE_SCATTER, Attrs.of(op, dim, group), tensor);
  }

  private static int checkScatter(Tensor tensor, ReduceOp op, int scatterDim, ProcessGroup group) {
    int dim = Shapes.dim(scatterDim, tensor.ndim());
    if (tensor.ndim() == 0 || tensor.size(dim) % group.size() != 0) {
      throw new IllegalArgumentException(
          "reduceScatterTensor: dimension "
              + scatterDim
              + " of shape "
              + Arrays.toString(tensor.shape())
              + " must be a multiple of the group's size "
              + group.size());
    }
    requireSum("reduce_scatter", op, tensor);
    return dim;
  }

  /** The same, with PyTorch's name of the reduction. */
  public static Tensor reduceScatterTensor(
      Tensor tensor, String op, int scatterDim, ProcessGroup group) {
    return reduceScatterTensor(tensor, ReduceOp.of(op), scatterDim, group);
  }

  /** {@link #reduceScatterTensor}, under the name that says that its gradient is an all-gather. */
  public static Tensor reduceScatterTensorAutograd(
      Tensor tensor, ReduceOp op, int scatterDim, ProcessGroup group) {
    return reduceScatterTensor(tensor, op, scatterDim, group);
  }

  /** The reduce-scatter of several tensors, each along its own dimension. */
  public static List<Tensor> reduceScatterTensorCoalesced(
      List<Tensor> tensors, ReduceOp op, int[] scatterDims, ProcessGroup group) {
    if (scatterDims.length != tensors.size()) {
      throw new IllegalArgumentException(
          "scatterDims "
              + Arrays.toString(scatterDims)
              + " must be one for each of the "
              + tensors.size()
              + " tensors");
    }
    if (Coalesced.fits(tensors)) {
      int[] dims = new int[scatterDims.length];
      for (int i = 0; i < dims.length; i++) {
        dims[i] = checkScatter(tensors.get(i), op, scatterDims[i], group);
      }
      return List.of(
          Dispatcher.callAll(Coalesced.REDUCE_SCATTER, Attrs.of(op, dims, group), array(tensors)));
    }
    List<Tensor> out = new ArrayList<>();
    for (int i = 0; i < scatterDims.length; i++) {
      out.add(reduceScatterTensor(tensors.get(i), op, scatterDims[i], group));
    }
    return out;
  }

  /** Equal parts of dimension 0 to each rank. */
  public static Tensor allToAllSingle(Tensor tensor, ProcessGroup group) {
    int n = group.size();
    if (tensor.ndim() == 0 || tensor.size(0) % n != 0) {
      throw new IllegalArgumentException(
          "allToAllSingle: dimension 0 of shape "
              + Arrays.toString(tensor.shape())
              + " must be a multiple of the group's size "
              + n);
    }
    long[] splits = new long[n];
    Arrays.fill(splits, tensor.size(0) / n);
    return allToAllSingle(tensor, splits, splits, group);
  }

  /**
   * Rows of dimension 0 to each rank.
   *
   * @param outputSplits rows that come from each rank
   * @param inputSplits rows that go to each rank; they add up to dimension 0
   */
  public static Tensor allToAllSingle(
      Tensor tensor, long[] outputSplits, long[] inputSplits, ProcessGroup group) {
    checkSplits("outputSplits", outputSplits, group.size(), -1);
    checkSplits("inputSplits", inputSplits, group.size(), tensor.ndim() == 0 ? 0 : tensor.size(0));
    return Dispatcher.call(
        FuncolOps.ALL_TO_ALL, Attrs.of(outputSplits, inputSplits, group), tensor);
  }

  /** {@link #allToAllSingle}, under the name that says that its gradient is the inverse. */
  public static Tensor allToAllSingleAutograd(
      Tensor tensor, long[] outputSplits, long[] inputSplits, ProcessGroup group) {
    return allToAllSingle(tensor, outputSplits, inputSplits, group);
  }

  private static void checkSplits(String name, long[] splits, int n, long total) {
    long sum = 0;
    for (long s : splits) {
      if (s < 0) {
        throw new IllegalArgumentException(
            name + " " + Arrays.toString(splits) + " must not be negative");
      }
      sum += s;
    }
    if (splits.length != n || (total >= 0 && sum != total)) {
      throw new IllegalArgumentException(
          name
              + " "
              + Arrays.toString(splits)
              + " must be "
              + n
              + " numbers"
              + (total >= 0 ? " that add up to dimension 0, which is " + total : ""));
    }
  }

  /**
   * One rank's tensor, on every rank. Its gradient is the sum of all ranks' gradients on the source
   * and zero elsewhere.
   */
  public static Tensor broadcast(Tensor tensor, int source, ProcessGroup group) {
    checkRank("source", source, group);
    return Dispatcher.call(FuncolOps.BROADCAST, Attrs.of(source, group), tensor);
  }

  /**
   * Each rank's tensor to another rank.
   *
   * @param destinations a permutation: where each rank's tensor goes
   */
  public static Tensor permuteTensor(Tensor tensor, int[] destinations, ProcessGroup group) {
    if (destinations.length != group.size()) {
      throw new IllegalArgumentException(
          "destinations " + Arrays.toString(destinations) + " must be " + group.size() + " ranks");
    }
    boolean[] seen = new boolean[group.size()];
    for (int d : destinations) {
      checkRank("destinations", d, group);
      if (seen[d]) {
        throw new IllegalArgumentException(
            "destinations " + Arrays.toString(destinations) + " names rank " + d + " twice");
      }
      seen[d] = true;
    }
    return Dispatcher.call(FuncolOps.PERMUTE, Attrs.of(destinations, group), tensor);
  }

  private static void checkRank(String name, int rank, ProcessGroup group) {
    if (rank < 0 || rank >= group.size()) {
      throw new IllegalArgumentException(
          name
              + " "
              + rank
              + " is out of range; expected a group rank of 0 to "
              + (group.size() - 1));
    }
  }

  /** Waits for a tensor's data; returns it as a plain tensor. */
  public static Tensor waitTensor(Tensor tensor) {
    tensor.storages().forEach(s -> s.await());
    return tensor instanceof AsyncCollectiveTensor a && !a.requiresGrad() ? a.await() : tensor;
  }

  private static Tensor[] array(List<Tensor> tensors) {
    return tensors.toArray(new Tensor[0]);
  }

  private static void requireSum(String what, ReduceOp op, Tensor tensor) {
    if (op.kind() != ReduceOp.Kind.SUM && tensor.requiresGrad() && Autograd.isEnabled()) {
      throw new IllegalArgumentException(
          what
              + ": only sums are differentiable; got "
              + op
              + " on a tensor that requires a gradient");
    }
  }
}
