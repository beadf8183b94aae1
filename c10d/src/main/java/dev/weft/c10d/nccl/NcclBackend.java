package dev.weft.c10d.nccl;

import static org.bytedeco.cuda.global.nccl.ncclAllGather;
import static org.bytedeco.cuda.global.nccl.ncclAllReduce;
import static org.bytedeco.cuda.global.nccl.ncclAlltoAll;
import static org.bytedeco.cuda.global.nccl.ncclBroadcast;
import static org.bytedeco.cuda.global.nccl.ncclReduce;
import static org.bytedeco.cuda.global.nccl.ncclReduceScatter;

import dev.weft.c10d.Backend;
import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.GroupContext;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import java.time.Duration;
import java.util.List;
import org.bytedeco.cuda.global.nccl;
import org.jspecify.annotations.Nullable;

/**
 * The NCCL backend of one group on one rank. Thread-safe.
 *
 * <p>A synchronous operation runs on the current stream of its tensors' device, and the call
 * returns when it has been launched: what the stream is given later comes after. An asynchronous
 * one runs on the communicator's own stream, behind what the current stream had been given.
 * Messages have no tags: those of a pair are matched in order.
 */
final class NcclBackend implements Backend {
  private static final List<StridedTensor> NONE = List.of();
  private static final int BYTE = nccl.ncclUint8;

  private final NcclGroup group;
  private final Launches launches;
  private final int rank;
  private final int size;
  private volatile @Nullable StridedTensor barrierFlag;

  private NcclBackend(NcclGroup group) {
    this.group = group;
    this.launches = new Launches(group);
    this.rank = group.rank();
    this.size = group.size();
  }

  /** Makes the backend; with a device bound to the rank, the world's communicator as well. */
  static NcclBackend of(GroupContext context) {
    NcclGroup group = new NcclGroup(context);
    group.begin();
    return new NcclBackend(group);
  }

  @Override
  public String name() {
    return "nccl";
  }

  // ---- collectives ----

  @Override
  public Work allReduce(StridedTensor tensor, ReduceOp op, CollectiveOptions options) {
    int dtype = NcclTypes.reduced("all_reduce", tensor.dtype());
    Reduction by = Reduction.of("all_reduce", op, tensor.dtype());
    Staging staging = new Staging();
    long at = staging.inOut(tensor);
    long count = tensor.numel();
    return launches.submit(
        "all_reduce",
        List.of(tensor),
        NONE,
        options,
        staging,
        (c, stream) ->
            count == 0
                ? 0
                : by.with(
                    c,
                    code ->
                        ncclAllReduce(
                            c.source(at), c.target(at), count, dtype, code, c.handle(), stream)));
  }

  @Override
  public Work broadcast(StridedTensor tensor, int root, CollectiveOptions options) {
    int dtype = NcclTypes.moved(tensor.dtype());
    Staging staging = new Staging();
    long at = rank == root ? staging.in(tensor) : staging.out(tensor);
    long count = NcclTypes.movedCount(tensor.dtype(), tensor.numel());
    return launches.submit(
        "broadcast",
        List.of(tensor),
        NONE,
        options,
        staging,
        (c, stream) ->
            count == 0
                ? 0
                : ncclBroadcast(
                    c.source(at), c.target(at), count, dtype, root, c.handle(), stream));
  }

  @Override
  public Work reduce(StridedTensor tensor, int root, ReduceOp op, CollectiveOptions options) {
    int dtype = NcclTypes.reduced("reduce", tensor.dtype());
    Reduction by = Reduction.of("reduce", op, tensor.dtype());
    Staging staging = new Staging();
    long at = rank == root ? staging.inOut(tensor) : staging.in(tensor);
    long count = tensor.numel();
    return launches.submit(
        "reduce",
        List.of(tensor),
        NONE,
        options,
        staging,
        (c, stream) ->
            count == 0
                ? 0
                : by.with(
                    c,
                    code ->
                        ncclReduce(
                            c.source(at),
                            c.target(at),
                            count,
                            dtype,
                            code,
                            root,
                            c.handle(),
                            stream)));
  }

  @Override
  public Work allGather(
      List<StridedTensor> outputs, StridedTensor input, CollectiveOptions options) {
    Staging staging = new Staging();
    if (!Sizes.areEqual(outputs)) {
      return launches.submit(
          "all_gather",
          outputs,
          List.of(input),
          options,
          staging,
          Uneven.allGather(staging, outputs, input, rank));
    }
    int n = size;
    StridedTensor flat =
        staging.block(input.dtype(), input.device(), Sizes.times(n, outputs.get(0).shape()));
    for (int r = 0; r < n; r++) {
      staging.afterwards(Regions.block(flat, outputs.get(r).shape(), r), outputs.get(r));
    }
    return launches.submit(
        "all_gather",
        outputs,
        List.of(input),
        options,
        staging,
        gather(staging.in(input), flat.rawAddress(), input));
  }

  @Override
  public Work allGatherIntoTensor(
      StridedTensor output, StridedTensor input, CollectiveOptions options) {
    Staging staging = new Staging();
    long to = staging.out(output);
    long bytes = input.numel() * input.dtype().byteSize();
    boolean apart =
        output.storage() != input.storage()
            || (input.isContiguous() && input.rawAddress() == to + rank * bytes);
    long from = apart ? staging.in(input) : staging.copy(input);
    return launches.submit(
        "all_gather_into_tensor",
        List.of(output),
        List.of(input),
        options,
        staging,
        gather(from, to, input));
  }

  private static NcclCommunicator.Body gather(long from, long to, StridedTensor input) {
    int dtype = NcclTypes.moved(input.dtype());
    long count = NcclTypes.movedCount(input.dtype(), input.numel());
    return (c, stream) ->
        count == 0
            ? 0
            : ncclAllGather(c.source(from), c.target(to), count, dtype, c.handle(), stream);
  }

  @Override
  public Work reduceScatter(
      StridedTensor output, List<StridedTensor> inputs, ReduceOp op, CollectiveOptions options) {
    int dtype = NcclTypes.reduced("reduce_scatter", output.dtype());
    Reduction by = Reduction.of("reduce_scatter", op, output.dtype());
    Staging staging = new Staging();
    if (!Sizes.areEqual(inputs)) {
      return launches.submit(
          "reduce_scatter",
          List.of(output),
          inputs,
          options,
          staging,
          Uneven.reduceScatter(staging, output, inputs, rank, dtype, by));
    }
    int n = size;
    StridedTensor flat =
        staging.block(output.dtype(), output.device(), Sizes.times(n, inputs.get(0).shape()));
    for (int r = 0; r < n; r++) {
      Regions.copy(inputs.get(r), Regions.block(flat, inputs.get(r).shape(), r));
    }
    return launches.submit(
        "reduce_scatter",
        List.of(output),
        inputs,
        options,
        staging,
        scatter(flat.rawAddress(), staging.out(output), output.numel(), dtype, by));
  }

  @Override
  public Work reduceScatterTensor(
      StridedTensor output, StridedTensor input, ReduceOp op, CollectiveOptions options) {
    int dtype = NcclTypes.reduced("reduce_scatter_tensor", output.dtype());
    Reduction by = Reduction.of("reduce_scatter_tensor", op, output.dtype());
    Staging staging = new Staging();
    long to = staging.out(output);
    long bytes = output.numel() * output.dtype().byteSize();
    boolean apart =
        output.storage() != input.storage()
            || (input.isContiguous() && to == input.rawAddress() + rank * bytes);
    long from = apart ? staging.in(input) : staging.copy(input);
    return launches.submit(
        "reduce_scatter_tensor",
        List.of(output),
        List.of(input),
        options,
        staging,
        scatter(from, to, output.numel(), dtype, by));
  }

  private static NcclCommunicator.Body scatter(
      long from, long to, long count, int dtype, Reduction by) {
    return (c, stream) ->
        count == 0
            ? 0
            : by.with(
                c,
                code ->
                    ncclReduceScatter(
                        c.source(from), c.target(to), count, dtype, code, c.handle(), stream));
  }

  @Override
  public Work allToAll(
      List<StridedTensor> outputs, List<StridedTensor> inputs, CollectiveOptions options) {
    Staging staging = new Staging();
    Exchange exchange = new Exchange("all_to_all", rank, size);
    int dtype = NcclTypes.moved(inputs.get(0).dtype());
    for (int r = 0; r < size; r++) {
      StridedTensor in = inputs.get(r);
      boolean shared = outputs.stream().anyMatch(o -> o.storage() == in.storage());
      exchange.send(
          r,
          shared ? staging.copy(in) : staging.in(in),
          NcclTypes.movedCount(in.dtype(), in.numel()),
          dtype);
      StridedTensor out = outputs.get(r);
      exchange.receive(r, staging.out(out), NcclTypes.movedCount(out.dtype(), out.numel()), dtype);
    }
    return launches.submit("all_to_all", outputs, inputs, options, staging, exchange);
  }

  @Override
  public Work allToAllSingle(
      StridedTensor output,
      StridedTensor input,
      long[] outputSplits,
      long[] inputSplits,
      CollectiveOptions options) {
    Staging staging = new Staging();
    long from = output.storage() == input.storage() ? staging.copy(input) : staging.in(input);
    long to = staging.out(output);
    long row = Sizes.rowBytes(input);
    Exchange exchange = new Exchange("all_to_all_single", rank, size);
    for (int r = 0; r < size; r++) {
      exchange.send(r, from, inputSplits[r] * row, BYTE);
      exchange.receive(r, to, outputSplits[r] * row, BYTE);
      from += inputSplits[r] * row;
      to += outputSplits[r] * row;
    }
    return launches.submit(
        "all_to_all_single", List.of(output), List.of(input), options, staging, exchange);
  }

  @Override
  public Work allToAllEven(
      StridedTensor output,
      StridedTensor input,
      long[] outputSplits,
      long[] inputSplits,
      CollectiveOptions options) {
    if (NcclLibrary.version() < NcclLibrary.WITH_ALL_TO_ALL) {
      return allToAllSingle(output, input, outputSplits, inputSplits, options);
    }
    Staging staging = new Staging();
    long from = output.storage() == input.storage() ? staging.copy(input) : staging.in(input);
    long to = staging.out(output);
    int dtype = NcclTypes.moved(input.dtype());
    long count = NcclTypes.movedCount(input.dtype(), input.numel()) / size;
    return launches.submit(
        "all_to_all_single",
        List.of(output),
        List.of(input),
        options,
        staging,
        (c, stream) ->
            count == 0
                ? 0
                : ncclAlltoAll(c.source(from), c.target(to), count, dtype, c.handle(), stream));
  }

  @Override
  public Work gather(
      StridedTensor input,
      @Nullable List<StridedTensor> outputs,
      int root,
      CollectiveOptions options) {
    Staging staging = new Staging();
    Exchange exchange = new Exchange("gather", rank, size);
    int dtype = NcclTypes.moved(input.dtype());
    boolean shared =
        outputs != null && outputs.stream().anyMatch(o -> o.storage() == input.storage());
    exchange.send(
        root,
        shared ? staging.copy(input) : staging.in(input),
        NcclTypes.movedCount(input.dtype(), input.numel()),
        dtype);
    if (outputs != null) {
      for (int r = 0; r < size; r++) {
        StridedTensor out = outputs.get(r);
        exchange.receive(
            r, staging.out(out), NcclTypes.movedCount(out.dtype(), out.numel()), dtype);
      }
    }
    return launches.submit(
        "gather", outputs == null ? NONE : outputs, List.of(input), options, staging, exchange);
  }

  @Override
  public Work scatter(
      StridedTensor output,
      @Nullable List<StridedTensor> inputs,
      int root,
      CollectiveOptions options) {
    Staging staging = new Staging();
    Exchange exchange = new Exchange("scatter", rank, size);
    int dtype = NcclTypes.moved(output.dtype());
    if (inputs != null) {
      for (int r = 0; r < size; r++) {
        StridedTensor in = inputs.get(r);
        exchange.send(
            r,
            in.storage() == output.storage() ? staging.copy(in) : staging.in(in),
            NcclTypes.movedCount(in.dtype(), in.numel()),
            dtype);
      }
    }
    exchange.receive(
        root, staging.out(output), NcclTypes.movedCount(output.dtype(), output.numel()), dtype);
    return launches.submit(
        "scatter", List.of(output), inputs == null ? NONE : inputs, options, staging, exchange);
  }

  /** A reduction of one number, after which the host waits for the device. */
  @Override
  public Work barrier(CollectiveOptions options) {
    group.checkUsable("barrier");
    Device bound = group.boundDevice();
    int device = bound != null ? bound.index() : group.communicators().deviceInUse();
    StridedTensor flag = barrierFlag(device);
    NcclWork work =
        new NcclWork(
            group, "barrier", group.nextSequence(), NONE, -1, true, launches.timeoutOf(options));
    long at = flag.rawAddress();
    int dtype = NcclTypes.reduced("barrier", DType.FLOAT32);
    group
        .communicators()
        .collective(device)
        .launch(
            work,
            options.async(),
            null,
            null,
            (c, stream) ->
                ncclAllReduce(
                    c.source(at), c.target(at), 1, dtype, nccl.ncclSum, c.handle(), stream));
    if (!options.async()) {
      work.awaitOnHost();
    }
    return work;
  }

  private StridedTensor barrierFlag(int device) {
    StridedTensor flag = barrierFlag;
    if (flag == null || flag.device().index() != device) {
      flag = TensorScope.outside(() -> Tensors.empty(DType.FLOAT32, Device.cuda(device), 1));
      Regions.zero(flag);
      barrierFlag = flag;
    }
    return flag;
  }

  // ---- messages ----

  @Override
  public Work send(StridedTensor tensor, int destination, int tag, CollectiveOptions options) {
    return launches.message(true, tensor, destination, options);
  }

  @Override
  public Work receive(StridedTensor tensor, int source, int tag, CollectiveOptions options) {
    if (source == ProcessGroup.ANY_SOURCE) {
      throw new IllegalArgumentException(
          "recv: source is any rank, which the nccl backend cannot do; expected a rank of group "
              + group.describeGroup());
    }
    return launches.message(false, tensor, source, options);
  }

  // ---- several at once ----

  @Override
  public void startCoalescing() {
    group.startCoalescing();
  }

  @Override
  public void endCoalescing() {
    launches.endCoalescing();
  }

  // ---- parts ----

  @Override
  public boolean canDivide() {
    return group.communicators().only() != null && group.isUsable();
  }

  @Override
  public @Nullable Backend split(@Nullable GroupContext part, int color, int key) {
    group.checkUsable("split_group");
    NcclGroup made = part == null ? null : new NcclGroup(part);
    Communicators.split(group, made, color, key);
    return made == null ? null : new NcclBackend(made);
  }

  @Override
  public boolean canShrink() {
    return true;
  }

  @Override
  public Backend shrink(GroupContext rest, int[] excluded, boolean abort) {
    if (NcclLibrary.version() < NcclLibrary.WITH_SHRINK) {
      throw new UnsupportedOperationException(
          "shrink_group: NCCL "
              + Nccl.version()
              + " cannot shrink a communicator; expected "
              + NcclLibrary.text(NcclLibrary.WITH_SHRINK)
              + " or newer");
    }
    if (group.communicators().only() == null) {
      throw new IllegalStateException(
          "shrink_group: group "
              + group.describeGroup()
              + " has no communicator yet; expected one that has been used, or a world with a bound"
              + " device");
    }
    NcclGroup made = new NcclGroup(rest);
    Communicators.shrink(group, made, excluded, abort);
    return new NcclBackend(made);
  }

  // ---- the end ----

  @Override
  public void abort(Throwable cause) {
    group.abort(cause);
  }

  @Override
  public void close(Duration limit) {
    group.close(limit);
    StridedTensor flag = barrierFlag;
    barrierFlag = null;
    if (flag != null) {
      flag.close();
    }
  }

  @Override
  public String toString() {
    return "nccl backend of group " + group.describeGroup();
  }
}
