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
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.memory.Memory;
import dev.weft.tensor.op.Pointwise;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

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

  /** Those of a mesh's root, by part and dimensions. */
  private static final class Known {
    final Map<Key, ShardCollectives> map = new ConcurrentHashMap<>();
  }

  private record Key(DeviceMesh mesh, List<Integer> dims) {}

  private ShardCollectives(DeviceMesh mesh, int meshDim) {
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

  /** Along one mesh dimension. */
  static ShardCollectives along(DeviceMesh mesh, int meshDim) {
    return along(mesh, List.of(meshDim));
  }

  /** Along several mesh dimensions at once, over a group that spans them, or along one. */
  static ShardCollectives along(DeviceMesh mesh, List<Integer> meshDims) {
    Map<Key, ShardCollectives> known = mesh.attachment(Known.class, Known::new).map;
    Key key = new Key(mesh, meshDims);
    ShardCollectives there = known.get(key);
    if (there == null) {
      // Not within the map: making a group may wait for other ranks.
      there = make(mesh, meshDims);
      known.put(key, there);
    }
    return there;
  }

  private static ShardCollectives make(DeviceMesh mesh, List<Integer> meshDims) {
    if (meshDims.size() == 1) {
      return new ShardCollectives(mesh, meshDims.get(0));
    }
    DeviceMesh merged = mesh.merged(meshDims.stream().mapToInt(Integer::intValue).toArray());
    if (merged == null) {
      throw new IllegalStateException("no group spans the mesh dimensions " + meshDims);
    }
    return new ShardCollectives(merged, 0);
  }

  /** The reduction of all parts. */
  StridedTensor allReduce(StridedTensor local, Partial p) {
    if (p.op() == Partial.Op.NORM) {
      Tensor sum = FunctionalCollectives.allReduce(power(local, p), p.op().reduceOp(), group);
      return (StridedTensor) Pointwise.pow(sum, 1 / p.order());
    }
    return (StridedTensor) FunctionalCollectives.allReduce(local, p.op().reduceOp(), group);
  }

  private static Tensor power(StridedTensor local, Partial p) {
    return Pointwise.pow(local, p.order());
  }

  /** All parts of a dimension of {@code size} elements. */
  StridedTensor allGather(StridedTensor local, Cuts cuts, long size) {
    int dim = cuts.dim();
    StridedTensor sent = pad(local, dim, cuts.longest(size));
    long[] whole = local.shape().clone();
    whole[dim] = size;
    StridedTensor out = Tensors.empty(local.dtype(), local.device(), whole);
    if (inOrder && cuts.isPlain() && cuts.isEven(size) && isOuter(whole, dim)) {
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
            spread(
                Regions.block(blocks, sent.shape(), groupRank[i]), out, dim, cuts.ranges(size, i));
          }
        };
    return AsyncCollectiveTensor.of(out, work, relayout, List.of(blocks));
  }

  /** Copies the positions of a part to where they belong in the whole. */
  private static void spread(
      StridedTensor part, StridedTensor whole, int dim, List<Cuts.Range> ranges) {
    long at = 0;
    for (Cuts.Range r : ranges) {
      Regions.copy(
          Regions.narrow(part, dim, at, r.length()),
          Regions.narrow(whole, dim, r.start(), r.length()));
      at += r.length();
    }
  }

  /** Copies the positions that make up a part, one after the other. */
  static void collect(StridedTensor whole, StridedTensor part, int dim, List<Cuts.Range> ranges) {
    long at = 0;
    for (Cuts.Range r : ranges) {
      Regions.copy(
          Regions.narrow(whole, dim, r.start(), r.length()),
          Regions.narrow(part, dim, at, r.length()));
      at += r.length();
    }
  }

  /** This rank's part of the reduction of all contributions. */
  StridedTensor reduceScatter(StridedTensor contribution, Cuts cuts, Partial p) {
    boolean norm = p.op() == Partial.Op.NORM;
    StridedTensor local = norm ? (StridedTensor) power(contribution, p) : contribution;
    int dim = cuts.dim();
    long size = local.shape()[dim];
    long chunk = cuts.longest(size);
    long[] part = local.shape().clone();
    part[dim] = chunk;
    StridedTensor blocks;
    boolean even = cuts.isEven(size);
    if (inOrder && even && cuts.isPlain() && local.isContiguous() && isOuter(local.shape(), dim)) {
      blocks = rows(local, part);
    } else {
      long[] stacked = part.clone();
      stacked[0] *= n;
      blocks = Tensors.empty(local.dtype(), local.device(), stacked);
      if (!even) {
        Regions.zero(blocks);
      }
      for (int i = 0; i < n; i++) {
        collect(local, Regions.block(blocks, part, groupRank[i]), dim, cuts.ranges(size, i));
      }
    }
    StridedTensor padded = Tensors.empty(local.dtype(), local.device(), part);
    Work work =
        group.reduceScatterTensor(padded, blocks, p.op().reduceOp(), CollectiveOptions.ASYNC);
    long mine = cuts.length(size, me);
    StridedTensor out;
    if (mine == chunk) {
      out = AsyncCollectiveTensor.of(padded, work, null, List.of());
    } else {
      long[] shape = local.shape().clone();
      shape[dim] = mine;
      StridedTensor cut = Tensors.empty(local.dtype(), local.device(), shape);
      out =
          AsyncCollectiveTensor.of(
              cut,
              work,
              () -> Regions.copy(Regions.narrow(padded, dim, 0, mine), cut),
              List.of(padded));
    }
    return norm ? (StridedTensor) Pointwise.pow(out, 1 / p.order()) : out;
  }

  /**
   * The part of {@code to} instead of the part of {@code from}.
   *
   * @param size elements of {@code from}'s dimension over all ranks
   */
  StridedTensor allToAll(StridedTensor local, Cuts from, Cuts to, long size) {
    int gathered = from.dim();
    int cut = to.dim();
    long width = local.shape()[cut];
    long rest = 1;
    for (int d = 0; d < local.ndim(); d++) {
      rest *= d == gathered || d == cut ? 1 : local.shape()[d];
    }
    long[] inputSplits = new long[n];
    long[] outputSplits = new long[n];
    long myWidth = to.length(width, me);
    for (int i = 0; i < n; i++) {
      inputSplits[groupRank[i]] = local.shape()[gathered] * to.length(width, i) * rest;
      outputSplits[groupRank[i]] = from.length(size, i) * myWidth * rest;
    }
    StridedTensor sent = Tensors.empty(local.dtype(), local.device(), sum(inputSplits));
    for (int i = 0; i < n; i++) {
      long[] shape = local.shape().clone();
      shape[cut] = to.length(width, i);
      collect(local, slice(sent, inputSplits, groupRank[i], shape), cut, to.ranges(width, i));
    }
    StridedTensor received = Tensors.empty(local.dtype(), local.device(), sum(outputSplits));
    Work work =
        group.allToAllSingle(received, sent, outputSplits, inputSplits, CollectiveOptions.ASYNC);
    long[] shape = local.shape().clone();
    shape[gathered] = size;
    shape[cut] = myWidth;
    StridedTensor out = Tensors.empty(local.dtype(), local.device(), shape);
    Runnable relayout =
        () -> {
          for (int i = 0; i < n; i++) {
            long[] block = shape.clone();
            block[gathered] = from.length(size, i);
            spread(
                slice(received, outputSplits, groupRank[i], block),
                out,
                gathered,
                from.ranges(size, i));
          }
        };
    return AsyncCollectiveTensor.of(out, work, relayout, List.of(received));
  }

  /** The parts of the source rank's tensor, one to each rank. */
  StridedTensor scatter(StridedTensor whole, Cuts cuts, int source) {
    int dim = cuts.dim();
    long size = whole.shape()[dim];
    long chunk = cuts.longest(size);
    long[] part = whole.shape().clone();
    part[dim] = chunk;
    StridedTensor padded = Tensors.empty(whole.dtype(), whole.device(), part);
    if (group.rank() == source) {
      StridedTensor[] parts = new StridedTensor[n];
      for (int i = 0; i < n; i++) {
        StridedTensor block = Tensors.empty(whole.dtype(), whole.device(), part);
        Regions.zero(block);
        collect(whole, block, dim, cuts.ranges(size, i));
        parts[groupRank[i]] = block;
      }
      group.scatter(padded, Arrays.asList(parts), source);
    } else {
      group.scatter(padded, null, source);
    }
    return Regions.contiguous(Regions.narrow(padded, dim, 0, cuts.length(size, me)));
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
    Device device = group.controlDevice();
    StridedTensor mine = Tensors.empty(DType.INT64, Device.CPU, shape.length);
    StridedTensor all = Tensors.empty(DType.INT64, device, (long) n * shape.length);
    Memory.put(mine.dataAddress(), shape, 0, shape.length);
    group.allGatherIntoTensor(all, mine.to(device));
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
