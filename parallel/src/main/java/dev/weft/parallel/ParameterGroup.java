package dev.weft.parallel;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.dtensor.Gradients;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.op.InPlace;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Parameters of one dtype and device that are gathered by one all-gather and whose gradients are
 * reduced by one reduce-scatter.
 */
final class ParameterGroup {
  private final List<ShardedParameter> parameters;
  private final List<ShardedParameter> trained;
  private final ProcessGroup group;
  private final @Nullable ProcessGroup replicas;
  private final DType wholeDtype;
  private final DType reduceDtype;
  private final Device device;
  // Where each index of the mesh dimension lies in what a collective gives.
  private final int[] positions;
  private final long elements;
  private long filledVersion = -1;
  private @Nullable Gather gather;
  private @Nullable Reduction reduction;
  // What has been scattered and not been summed over replicas yet.
  private @Nullable StridedTensor unreplicated;

  private record Gather(StridedTensor input, StridedTensor output, Work work, long version) {
    void close() {
      work.await();
      input.close();
      output.close();
    }
  }

  private record Reduction(StridedTensor input, StridedTensor output, Work work) {}

  ParameterGroup(
      List<ShardedParameter> parameters,
      DeviceMesh mesh,
      DType wholeDtype,
      DType reduceDtype,
      Device device) {
    this.parameters = List.copyOf(parameters);
    this.trained = parameters.stream().filter(p -> p.sharded().requiresGrad()).toList();
    int shardDim = mesh.ndim() - 1;
    this.group = mesh.getGroup(shardDim);
    this.replicas = mesh.ndim() == 2 ? mesh.getGroup(0) : null;
    this.wholeDtype = wholeDtype;
    this.reduceDtype = reduceDtype;
    this.device = device;
    this.positions = new int[mesh.size(shardDim)];
    for (int i = 0; i < positions.length; i++) {
      positions[i] = mesh.groupRank(shardDim, i);
    }
    this.elements = parameters.stream().mapToLong(ShardedParameter::chunkElements).sum();
  }

  private long version() {
    long v = 0;
    for (ShardedParameter p : parameters) {
      v += p.sharded().version();
    }
    return v;
  }

  private long[] offsets(long at, long each) {
    long[] offsets = new long[positions.length];
    for (int i = 0; i < positions.length; i++) {
      offsets[i] = positions[i] * each + at;
    }
    return offsets;
  }

  private StridedTensor buffer(DType dtype, long n) {
    return TensorScope.outside(() -> Tensors.empty(dtype, device, n));
  }

  boolean isWhole() {
    return parameters.get(0).isWhole() && filledVersion == version();
  }

  boolean isGatheredAhead() {
    return gather != null;
  }

  /** Starts to gather, unless that is done or under way. */
  void prefetch() {
    if (gather != null && gather.version != version()) {
      gather.close();
      gather = null;
    }
    if (gather != null || isWhole()) {
      return;
    }
    StridedTensor input = buffer(wholeDtype, elements);
    StridedTensor output = buffer(wholeDtype, elements * positions.length);
    long at = 0;
    for (ShardedParameter p : parameters) {
      p.copyPartTo(input, at);
      at += p.chunkElements();
    }
    Work work = group.allGatherIntoTensor(output, input, CollectiveOptions.ASYNC);
    gather = new Gather(input, output, work, version());
  }

  /** Makes the parameters whole. */
  void unshard() {
    prefetch();
    Gather g = gather;
    if (g == null) {
      return;
    }
    g.work.await();
    boolean changed = filledVersion != g.version;
    long at = 0;
    for (ShardedParameter p : parameters) {
      p.fill(g.output, offsets(at, elements), changed);
      at += p.chunkElements();
    }
    filledVersion = g.version;
    g.close();
    gather = null;
  }

  /** Lets whole parameters go. */
  void reshard() {
    for (ShardedParameter p : parameters) {
      p.dropWhole();
    }
  }

  /** Lets what was gathered in vain go. */
  void dropPrefetched() {
    if (gather != null) {
      gather.close();
      gather = null;
    }
  }

  /** Starts to reduce the gradients that are there; those that are not count as zero. */
  void startReduction() {
    if (trained.isEmpty()) {
      return;
    }
    for (ShardedParameter p : trained) {
      Gradients.settle(p.whole());
    }
    long each = trained.stream().mapToLong(ShardedParameter::chunkElements).sum();
    StridedTensor input = buffer(reduceDtype, each * positions.length);
    StridedTensor output = buffer(reduceDtype, each);
    long at = 0;
    for (ShardedParameter p : trained) {
      p.copyGradientTo(input, offsets(at, each));
      at += p.chunkElements();
    }
    Work work = group.reduceScatterTensor(output, input, ReduceOp.AVG, CollectiveOptions.ASYNC);
    reduction = new Reduction(input, output, work);
  }

  /** Adds what was reduced to the parameters' gradients, or keeps it until replicas are summed. */
  void finishReduction(boolean allReduce) {
    Reduction r = reduction;
    if (r == null) {
      return;
    }
    reduction = null;
    r.work.await();
    r.input.close();
    StridedTensor sum = r.output;
    if (replicas != null) {
      StridedTensor before = unreplicated;
      if (before != null) {
        Tensor unused = InPlace.add(before, sum);
        sum.close();
        sum = before;
        unreplicated = null;
      }
      if (!allReduce) {
        unreplicated = sum;
        return;
      }
      Work unused = replicas.allReduce(sum, ReduceOp.AVG);
    }
    long at = 0;
    for (ShardedParameter p : trained) {
      p.accumulate(sum, at);
      at += p.chunkElements();
    }
    sum.close();
  }

  List<ShardedParameter> parameters() {
    return parameters;
  }

  List<ShardedParameter> trained() {
    return trained;
  }
}
