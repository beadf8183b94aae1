package dev.weft.dtensor;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.Work;
import dev.weft.funcol.AsyncCollectiveTensor;
import dev.weft.funcol.FunctionalCollectives;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Regions;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.memory.Memory;
import java.util.Arrays;
import java.util.List;

/**
 * The collectives of a redistribution along one mesh dimension, on this rank's part. Chunks are
 * padded to equal length where the collective wants that, and cut afterwards; they are exchanged in
 * the order of the group and stored in the order of the mesh. Results arrive when first read.
 */
final class ShardCollectives {
  private final ProcessGroup group;
  private final int n;
  private final int me;
  // The group rank of each index along the mesh dimension.
  private final int[] groupRank;
  private final boolean inOrder;

  ShardCollectives(DeviceMesh mesh, int meshDim) {
    this.group = mesh.getGroup(meshDim);
    this.n = mesh.size(meshDim);
    this.me = mesh.coordinate(meshDim);
    this.groupRank = new int[n];
    boolean same = true;
    for (int i = 0; i < n; i++) {
      groupRank[i] = mesh.groupRank(meshDim, i);
      same &= groupRank[i] == i;
    }
    this.inOrder = same;
  }

  /** The reduction of all parts. */
  StridedTensor allReduce(StridedTensor local, Partial.Op op) {
    return (StridedTensor) FunctionalCollectives.allReduce(local, op.reduceOp(), group);
  }

  /** All chunks of a dimension of {@code size} elements. */
  StridedTensor allGather(StridedTensor local, int dim, long size) {
    long chunk = Layout.chunk(size, n);
    StridedTensor sent = pad(local, dim, chunk);
    long[] whole = local.shape().clone();
    whole[dim] = size;
    StridedTensor out = Tensors.empty(local.dtype(), local.device(), whole);
    if (inOrder && size == chunk * n && isOuter(whole, dim)) {
      Work work = group.allGatherIntoTensor(rows(out, sent.shape()), sent, CollectiveOptions.ASYNC);
      return AsyncCollectiveTensor.of(out, work, null, List.of());
    }
    long[] stacked = sent.shape().clone();
    stacked[0] *= n;
    StridedTensor blocks = Tensors.empty(local.dtype(), local.device(), stacked);
    Work work = group.allGatherIntoTensor(blocks, sent, CollectiveOptions.ASYNC);
    Runnable relayout =
        () -> {
          for (int i = 0; i < n; i++) {
            long length = Layout.length(size, n, i);
            Regions.copy(
                Regions.narrow(Regions.block(blocks, sent.shape(), groupRank[i]), dim, 0, length),
                Regions.narrow(out, dim, Layout.start(size, n, i), length));
          }
        };
    return AsyncCollectiveTensor.of(out, work, relayout, List.of(blocks));
  }

  /** This rank's chunk of the reduction of all parts. */
  StridedTensor reduceScatter(StridedTensor local, int dim, Partial.Op op) {
    long size = local.shape()[dim];
    long chunk = Layout.chunk(size, n);
    long[] part = local.shape().clone();
    part[dim] = chunk;
    StridedTensor blocks;
    if (inOrder && size == chunk * n && local.isContiguous() && isOuter(local.shape(), dim)) {
      blocks = rows(local, part);
    } else {
      long[] stacked = part.clone();
      stacked[0] *= n;
      blocks = Tensors.empty(local.dtype(), local.device(), stacked);
      if (size != chunk * n) {
        Regions.zero(blocks);
      }
      for (int i = 0; i < n; i++) {
        long length = Layout.length(size, n, i);
        Regions.copy(
            Regions.narrow(local, dim, Layout.start(size, n, i), length),
            Regions.narrow(Regions.block(blocks, part, groupRank[i]), dim, 0, length));
      }
    }
    StridedTensor padded = Tensors.empty(local.dtype(), local.device(), part);
    Work work = group.reduceScatterTensor(padded, blocks, op.reduceOp(), CollectiveOptions.ASYNC);
    long mine = Layout.length(size, n, me);
    if (mine == chunk) {
      return AsyncCollectiveTensor.of(padded, work, null, List.of());
    }
    long[] shape = local.shape().clone();
    shape[dim] = mine;
    StridedTensor out = Tensors.empty(local.dtype(), local.device(), shape);
    return AsyncCollectiveTensor.of(
        out, work, () -> Regions.copy(Regions.narrow(padded, dim, 0, mine), out), List.of(padded));
  }

  /**
   * The chunk of {@code to} instead of the chunk of {@code from}.
   *
   * @param size elements of {@code from} over all ranks
   */
  StridedTensor allToAll(StridedTensor local, int from, int to, long size) {
    long width = local.shape()[to];
    long rest = 1;
    for (int d = 0; d < local.ndim(); d++) {
      rest *= d == from || d == to ? 1 : local.shape()[d];
    }
    long[] inputSplits = new long[n];
    long[] outputSplits = new long[n];
    long myWidth = Layout.length(width, n, me);
    for (int i = 0; i < n; i++) {
      inputSplits[groupRank[i]] = local.shape()[from] * Layout.length(width, n, i) * rest;
      outputSplits[groupRank[i]] = Layout.length(size, n, i) * myWidth * rest;
    }
    StridedTensor sent = Tensors.empty(local.dtype(), local.device(), sum(inputSplits));
    for (int i = 0; i < n; i++) {
      long length = Layout.length(width, n, i);
      StridedTensor piece = Regions.narrow(local, to, Layout.start(width, n, i), length);
      Regions.copy(piece, slice(sent, inputSplits, groupRank[i], piece.shape()));
    }
    StridedTensor received = Tensors.empty(local.dtype(), local.device(), sum(outputSplits));
    Work work =
        group.allToAllSingle(received, sent, outputSplits, inputSplits, CollectiveOptions.ASYNC);
    long[] shape = local.shape().clone();
    shape[from] = size;
    shape[to] = myWidth;
    StridedTensor out = Tensors.empty(local.dtype(), local.device(), shape);
    Runnable relayout =
        () -> {
          for (int i = 0; i < n; i++) {
            long length = Layout.length(size, n, i);
            StridedTensor target = Regions.narrow(out, from, Layout.start(size, n, i), length);
            Regions.copy(slice(received, outputSplits, groupRank[i], target.shape()), target);
          }
        };
    return AsyncCollectiveTensor.of(out, work, relayout, List.of(received));
  }

  /** The chunks of the source rank's tensor, one to each rank. */
  StridedTensor scatter(StridedTensor whole, int dim, int source) {
    long size = whole.shape()[dim];
    long chunk = Layout.chunk(size, n);
    long[] part = whole.shape().clone();
    part[dim] = chunk;
    StridedTensor padded = Tensors.empty(whole.dtype(), whole.device(), part);
    if (group.rank() == source) {
      StridedTensor[] parts = new StridedTensor[n];
      for (int i = 0; i < n; i++) {
        long length = Layout.length(size, n, i);
        parts[groupRank[i]] =
            pad(Regions.narrow(whole, dim, Layout.start(size, n, i), length), dim, chunk);
      }
      group.scatter(padded, Arrays.asList(parts), source);
    } else {
      group.scatter(padded, null, source);
    }
    return Regions.contiguous(Regions.narrow(padded, dim, 0, Layout.length(size, n, me)));
  }

  /** The source rank's tensor on every rank. */
  StridedTensor broadcast(StridedTensor local, int source) {
    StridedTensor copy = Regions.copyOf(local);
    group.broadcast(copy, source);
    return copy;
  }

  /**
   * Compares the shapes of the ranks' parts.
   *
   * @throws IllegalArgumentException on every rank where they differ
   */
  void requireSameShape(long[] shape) {
    StridedTensor mine = Tensors.empty(DType.INT64, Device.CPU, shape.length);
    StridedTensor all = Tensors.empty(DType.INT64, Device.CPU, (long) n * shape.length);
    Memory.put(mine.dataAddress(), shape, 0, shape.length);
    group.allGatherIntoTensor(all, mine);
    long[] rows = all.toLongArray();
    for (int r = 1; r < n; r++) {
      long[] first = Arrays.copyOf(rows, shape.length);
      long[] other = Arrays.copyOfRange(rows, r * shape.length, (r + 1) * shape.length);
      if (!Arrays.equals(first, other)) {
        throw new IllegalArgumentException(
            "fromLocal: the parts differ: rank "
                + group.globalRank(0)
                + " has shape "
                + Arrays.toString(first)
                + ", rank "
                + group.globalRank(r)
                + " "
                + Arrays.toString(other)
                + "; give the global shape");
      }
    }
  }

  private static StridedTensor slice(StridedTensor flat, long[] splits, int k, long[] shape) {
    long start = 0;
    for (int i = 0; i < k; i++) {
      start += splits[i];
    }
    return flat.withLayout(
        shape, Shapes.contiguousStrides(shape), splits[k] == 0 ? 0 : flat.offset() + start);
  }

  private static long sum(long[] values) {
    return Arrays.stream(values).sum();
  }

  private static StridedTensor pad(StridedTensor t, int dim, long size) {
    if (t.shape()[dim] == size) {
      return Regions.contiguous(t);
    }
    long[] shape = t.shape().clone();
    shape[dim] = size;
    StridedTensor padded = Tensors.empty(t.dtype(), t.device(), shape);
    Regions.zero(padded);
    Regions.copy(t, Regions.narrow(padded, dim, 0, t.shape()[dim]));
    return padded;
  }

  private static boolean isOuter(long[] shape, int dim) {
    for (int d = 0; d < dim; d++) {
      if (shape[d] != 1) {
        return false;
      }
    }
    return true;
  }

  /** A contiguous tensor as n blocks stacked along dimension 0. */
  private StridedTensor rows(StridedTensor t, long[] block) {
    long[] shape = block.clone();
    shape[0] *= n;
    return Regions.reshaped(t, shape);
  }
}
