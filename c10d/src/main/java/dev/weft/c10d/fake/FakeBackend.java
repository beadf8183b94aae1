package dev.weft.c10d.fake;

import dev.weft.c10d.Backend;
import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.CompletableWork;
import dev.weft.c10d.GroupContext;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.Regions;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.cpu.CopyKernels;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Ends every operation at once, as if the other ranks held what this one holds: gathered outputs
 * are copies of the local input, reductions leave the tensor as it is. Calls and bytes are counted
 * ({@link FakeTraffic}). Thread-safe.
 */
final class FakeBackend implements Backend {
  private final GroupContext group;
  private final FakeTraffic traffic;
  private final AtomicLong sequence = new AtomicLong();

  FakeBackend(GroupContext group) {
    this.group = group;
    this.traffic = FakeTraffic.of(group.rankContext());
  }

  @Override
  public String name() {
    return "fake";
  }

  @Override
  public Work allReduce(StridedTensor tensor, ReduceOp op, CollectiveOptions options) {
    return done("all_reduce", List.of(tensor), List.of(tensor));
  }

  @Override
  public Work broadcast(StridedTensor tensor, int root, CollectiveOptions options) {
    return done(
        "broadcast", List.of(tensor), root == group.groupRank() ? List.of(tensor) : List.of());
  }

  @Override
  public Work reduce(StridedTensor tensor, int root, ReduceOp op, CollectiveOptions options) {
    return done("reduce", List.of(tensor), List.of(tensor));
  }

  @Override
  public Work allGather(
      List<StridedTensor> outputs, StridedTensor input, CollectiveOptions options) {
    outputs.forEach(o -> copyWhereItFits(input, o));
    return done("all_gather", outputs, List.of(input));
  }

  @Override
  public Work allGatherIntoTensor(
      StridedTensor output, StridedTensor input, CollectiveOptions options) {
    if (output.isContiguous()) {
      for (int r = 0; r < group.size(); r++) {
        copyWhereItFits(input, part(output, r * input.numel(), input.numel()));
      }
    }
    return done("all_gather_into_tensor", List.of(output), List.of(input));
  }

  @Override
  public Work reduceScatter(
      StridedTensor output, List<StridedTensor> inputs, ReduceOp op, CollectiveOptions options) {
    copyWhereItFits(inputs.get(group.groupRank()), output);
    return done("reduce_scatter", List.of(output), inputs);
  }

  @Override
  public Work reduceScatterTensor(
      StridedTensor output, StridedTensor input, ReduceOp op, CollectiveOptions options) {
    if (input.isContiguous()) {
      long n = output.numel();
      copyWhereItFits(part(input, group.groupRank() * n, n), output);
    }
    return done("reduce_scatter_tensor", List.of(output), List.of(input));
  }

  @Override
  public Work allToAll(
      List<StridedTensor> outputs, List<StridedTensor> inputs, CollectiveOptions options) {
    for (int r = 0; r < outputs.size(); r++) {
      copyWhereItFits(inputs.get(r), outputs.get(r));
    }
    return done("all_to_all", outputs, inputs);
  }

  @Override
  public Work allToAllSingle(
      StridedTensor output,
      StridedTensor input,
      long[] outputSplits,
      long[] inputSplits,
      CollectiveOptions options) {
    copyWhereItFits(input, output);
    return done("all_to_all_single", List.of(output), List.of(input));
  }

  @Override
  public Work gather(
      StridedTensor input,
      @Nullable List<StridedTensor> outputs,
      int root,
      CollectiveOptions options) {
    if (outputs != null) {
      outputs.forEach(o -> copyWhereItFits(input, o));
    }
    return done("gather", outputs == null ? List.of() : outputs, List.of(input));
  }

  @Override
  public Work scatter(
      StridedTensor output,
      @Nullable List<StridedTensor> inputs,
      int root,
      CollectiveOptions options) {
    if (inputs != null) {
      copyWhereItFits(inputs.get(group.groupRank()), output);
    }
    return done("scatter", List.of(output), inputs == null ? List.of() : inputs);
  }

  @Override
  public Work barrier(CollectiveOptions options) {
    return done("barrier", List.of(), List.of());
  }

  @Override
  public Work send(StridedTensor tensor, int destination, int tag, CollectiveOptions options) {
    return done("send", List.of(), List.of(tensor));
  }

  @Override
  public Work receive(StridedTensor tensor, int source, int tag, CollectiveOptions options) {
    return done("recv", List.of(tensor), List.of());
  }

  @Override
  public void abort(Throwable cause) {}

  @Override
  public void close(Duration timeout) {}

  private Work done(String name, List<? extends Tensor> outputs, List<StridedTensor> handedIn) {
    traffic.count(name, handedIn);
    CompletableWork work =
        new CompletableWork(name, sequence.incrementAndGet(), List.copyOf(outputs), List.of());
    boolean unused = work.complete();
    return work;
  }

  private static StridedTensor part(StridedTensor t, long start, long n) {
    long[] shape = {n};
    return t.withLayout(shape, Shapes.contiguousStrides(shape), t.offset() + start);
  }

  /** Device memory is left as it is: no data is the point. */
  private static void copyWhereItFits(StridedTensor from, StridedTensor to) {
    if (!from.device().isCpu() || from.numel() != to.numel()) {
      return;
    }
    if (to.isContiguous()) {
      CopyKernels.copy(from, Regions.reshaped(to, from.shape()));
    } else if (from.isContiguous()) {
      CopyKernels.copy(Regions.reshaped(from, to.shape()), to);
    }
  }
}
