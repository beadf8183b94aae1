package dev.weft.c10d.nccl;

import static org.bytedeco.cuda.global.nccl.ncclAllGather;
import static org.bytedeco.cuda.global.nccl.ncclAllReduce;
import static org.bytedeco.cuda.global.nccl.ncclAlltoAll;
import static org.bytedeco.cuda.global.nccl.ncclBroadcast;
import static org.bytedeco.cuda.global.nccl.ncclReduce;
import static org.bytedeco.cuda.global.nccl.ncclReduceScatter;

import dev.weft.c10d.Backend;
import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.Deadline;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.GroupContext;
import dev.weft.c10d.PeerFailedException;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Regions;
import dev.weft.tensor.Storage;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.cuda.CudaStorage;
import dev.weft.tensor.cuda.CudaStream;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
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
  private static final Duration DEFAULT_TIMEOUT = Duration.ofMinutes(10);
  private static final long NEWS_NANOS = 3_000_000_000L;
  private static final int BYTE = nccl.ncclUint8;

  private final GroupContext group;
  private final NcclOptions options;
  private final Duration timeout;
  private final Communicators communicators;
  private final PeerWatch peers;
  private final AtomicLong sequence = new AtomicLong();
  private volatile @Nullable Throwable failure;
  private final AtomicBoolean errorSeen = new AtomicBoolean();
  private volatile boolean closed;
  private volatile @Nullable Batch batch;
  private volatile @Nullable StridedTensor barrierFlag;

  private NcclBackend(GroupContext group) {
    this.group = group;
    this.options =
        group.options() instanceof NcclOptions given ? given : NcclOptions.fromEnvironment();
    // Half an hour stands for "not said"; NCCL's own default is shorter, as in PyTorch.
    this.timeout =
        group.timeout().equals(Distributed.DEFAULT_TIMEOUT) ? DEFAULT_TIMEOUT : group.timeout();
    this.communicators = new Communicators(this, group);
    this.peers = PeerWatch.of(group.rankContext());
    peers.add(this);
  }

  /** Makes the backend; with a device bound to the rank, the world's communicator as well. */
  static NcclBackend of(GroupContext group) {
    NcclBackend made = new NcclBackend(group);
    if (group.size() == group.rankContext().worldSize()) {
      made.peers.connect(made.timeout);
      Device bound = group.rankContext().boundDevice();
      if (bound != null && group.name().equals("world")) {
        NcclCommunicator unused = made.communicators.collective(bound.index());
      }
    }
    return made;
  }

  @Override
  public String name() {
    return "nccl";
  }

  // ---- what the other classes ask ----

  NcclOptions options() {
    return options;
  }

  Duration timeout() {
    return timeout;
  }

  Communicators communicators() {
    return communicators;
  }

  int rank() {
    return group.groupRank();
  }

  int size() {
    return group.size();
  }

  int globalRank(int groupRank) {
    return group.ranks().get(groupRank);
  }

  String groupName() {
    return group.name();
  }

  String describeGroup() {
    return group.describe();
  }

  @Nullable Throwable failure() {
    return failure;
  }

  /** This rank, as one that comes to meet the others. */
  Arrivals.Member member() {
    return new Arrivals.Member() {
      @Override
      public String describe() {
        return "group " + describeGroup() + " on rank " + globalRank(rank());
      }

      @Override
      public void throwIfUnusable(String what) {
        Throwable stopped = failure;
        if (stopped != null) {
          throw unusable(what, stopped);
        }
      }
    };
  }

  boolean isCoalescingHere() {
    Batch b = batch;
    return b != null && b.thread == Thread.currentThread();
  }

  void checkUsable(String operation) {
    Throwable f = failure;
    if (f != null) {
      throw unusable(operation, f);
    }
    if (closed) {
      throw new IllegalStateException(
          operation + ": group " + group.describe() + " has been destroyed");
    }
  }

  DistributedException unusable(String operation, Throwable earlier) {
    String text =
        operation
            + ": group "
            + group.describe()
            + " is unusable since an earlier operation failed: "
            + earlier.getMessage();
    return earlier instanceof PeerFailedException
        ? new PeerFailedException(text, earlier)
        : new DistributedException(text, earlier);
  }

  // ---- collectives ----

  @Override
  public Work allReduce(StridedTensor tensor, ReduceOp op, CollectiveOptions options) {
    int dtype = NcclTypes.reduced("all_reduce", tensor.dtype());
    Reduction by = Reduction.of("all_reduce", op, tensor.dtype());
    Staging staging = new Staging();
    long at = staging.inOut(tensor);
    long count = tensor.numel();
    return submit(
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
    long at = rank() == root ? staging.in(tensor) : staging.out(tensor);
    long count = NcclTypes.movedCount(tensor.dtype(), tensor.numel());
    return submit(
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
    long at = rank() == root ? staging.inOut(tensor) : staging.in(tensor);
    long count = tensor.numel();
    return submit(
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
      return submit(
          "all_gather",
          outputs,
          List.of(input),
          options,
          staging,
          Uneven.allGather(staging, outputs, input, rank()));
    }
    int n = size();
    StridedTensor flat =
        staging.block(input.dtype(), input.device(), Sizes.times(n, outputs.get(0).shape()));
    for (int r = 0; r < n; r++) {
      staging.afterwards(Regions.block(flat, outputs.get(r).shape(), r), outputs.get(r));
    }
    return submit(
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
            || (input.isContiguous() && input.rawAddress() == to + rank() * bytes);
    long from = apart ? staging.in(input) : staging.copy(input);
    return submit(
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
      return submit(
          "reduce_scatter",
          List.of(output),
          inputs,
          options,
          staging,
          Uneven.reduceScatter(staging, output, inputs, rank(), dtype, by));
    }
    int n = size();
    StridedTensor flat =
        staging.block(output.dtype(), output.device(), Sizes.times(n, inputs.get(0).shape()));
    for (int r = 0; r < n; r++) {
      Regions.copy(inputs.get(r), Regions.block(flat, inputs.get(r).shape(), r));
    }
    return submit(
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
            || (input.isContiguous() && to == input.rawAddress() + rank() * bytes);
    long from = apart ? staging.in(input) : staging.copy(input);
    return submit(
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
    Exchange exchange = new Exchange("all_to_all", rank(), size());
    int dtype = NcclTypes.moved(inputs.get(0).dtype());
    for (int r = 0; r < size(); r++) {
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
    return submit("all_to_all", outputs, inputs, options, staging, exchange);
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
    Exchange exchange = new Exchange("all_to_all_single", rank(), size());
    for (int r = 0; r < size(); r++) {
      exchange.send(r, from, inputSplits[r] * row, BYTE);
      exchange.receive(r, to, outputSplits[r] * row, BYTE);
      from += inputSplits[r] * row;
      to += outputSplits[r] * row;
    }
    return submit("all_to_all_single", List.of(output), List.of(input), options, staging, exchange);
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
    long count = NcclTypes.movedCount(input.dtype(), input.numel()) / size();
    return submit(
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
    Exchange exchange = new Exchange("gather", rank(), size());
    int dtype = NcclTypes.moved(input.dtype());
    boolean shared =
        outputs != null && outputs.stream().anyMatch(o -> o.storage() == input.storage());
    exchange.send(
        root,
        shared ? staging.copy(input) : staging.in(input),
        NcclTypes.movedCount(input.dtype(), input.numel()),
        dtype);
    if (outputs != null) {
      for (int r = 0; r < size(); r++) {
        StridedTensor out = outputs.get(r);
        exchange.receive(
            r, staging.out(out), NcclTypes.movedCount(out.dtype(), out.numel()), dtype);
      }
    }
    return submit(
        "gather", outputs == null ? NONE : outputs, List.of(input), options, staging, exchange);
  }

  @Override
  public Work scatter(
      StridedTensor output,
      @Nullable List<StridedTensor> inputs,
      int root,
      CollectiveOptions options) {
    Staging staging = new Staging();
    Exchange exchange = new Exchange("scatter", rank(), size());
    int dtype = NcclTypes.moved(output.dtype());
    if (inputs != null) {
      for (int r = 0; r < size(); r++) {
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
    return submit(
        "scatter", List.of(output), inputs == null ? NONE : inputs, options, staging, exchange);
  }

  /** A reduction of one number, after which the host waits for the device. */
  @Override
  public Work barrier(CollectiveOptions options) {
    checkUsable("barrier");
    Device bound = group.rankContext().boundDevice();
    int device = bound != null ? bound.index() : communicators.deviceInUse();
    StridedTensor flag = barrierFlag(device);
    NcclWork work =
        new NcclWork(
            this, "barrier", sequence.incrementAndGet(), NONE, -1, true, timeoutOf(options));
    long at = flag.rawAddress();
    int dtype = NcclTypes.reduced("barrier", DType.FLOAT32);
    communicators
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
    return message(true, tensor, destination, options);
  }

  @Override
  public Work receive(StridedTensor tensor, int source, int tag, CollectiveOptions options) {
    if (source == ProcessGroup.ANY_SOURCE) {
      throw new IllegalArgumentException(
          "recv: source is any rank, which the nccl backend cannot do; expected a rank of group "
              + group.describe());
    }
    return message(false, tensor, source, options);
  }

  private Work message(boolean send, StridedTensor t, int peer, CollectiveOptions options) {
    String name = send ? "send" : "recv";
    checkUsable(name);
    PairChannel pair = communicators.pair(peer);
    Staging staging = new Staging();
    long at = send ? staging.in(t) : staging.out(t);
    long count = NcclTypes.movedCount(t.dtype(), t.numel());
    int dtype = NcclTypes.moved(t.dtype());
    List<StridedTensor> one = List.of(t);
    NcclWork work =
        new NcclWork(
            this, name, pair.nextNumber(send), send ? NONE : one, peer, false, timeoutOf(options));
    int device = t.device().index();
    boolean async = options.async();
    keep(work, device, async, one, NONE, staging);
    Batch b = batchHere(name, device);
    if (b != null) {
      Exchange messages = b.add(work);
      Exchange unused =
          send ? messages.send(peer, at, count, dtype) : messages.receive(peer, at, count, dtype);
      b.staging.takeOver(staging);
      return work;
    }
    PairChannel.Message m = new PairChannel.Message(send, work, device, at, count, dtype, staging);
    if (async) {
      pair.post(m);
    } else {
      try {
        pair.now(m);
      } finally {
        staging.close();
      }
      if (this.options.blockingWait()) {
        work.awaitOnHost();
      }
    }
    return work;
  }

  // ---- the way of every operation ----

  private NcclWork submit(
      String name,
      List<StridedTensor> outputs,
      List<StridedTensor> inputs,
      CollectiveOptions options,
      Staging staging,
      NcclCommunicator.Body body) {
    boolean async = options.async();
    try {
      checkUsable(name);
      int device = (outputs.isEmpty() ? inputs : outputs).get(0).device().index();
      NcclWork work =
          new NcclWork(
              this, name, sequence.incrementAndGet(), outputs, -1, false, timeoutOf(options));
      keep(work, device, async, outputs, inputs, staging);
      Batch b = batchHere(name, device);
      if (b != null) {
        b.add(work, body);
        b.staging.takeOver(staging);
        return work;
      }
      communicators.collective(device).launch(work, async, null, staging, body);
      if (!async && this.options.blockingWait()) {
        work.awaitOnHost();
      }
      return work;
    } finally {
      staging.close();
    }
  }

  /**
   * The memory of an asynchronous operation is held by its work. That of a synchronous one is safe
   * where it belongs to the stream that the operation runs on; other streams' is told of it.
   */
  private static void keep(
      NcclWork work,
      int device,
      boolean async,
      List<StridedTensor> outputs,
      List<StridedTensor> inputs,
      Staging staging) {
    if (!async) {
      CudaStream current = CudaStream.current(device);
      for (int i = 0; i < outputs.size(); i++) {
        tell(outputs.get(i).storage(), current);
      }
      for (int i = 0; i < inputs.size(); i++) {
        tell(inputs.get(i).storage(), current);
      }
      return;
    }
    int o = outputs.size();
    int n = inputs.size();
    Storage[] held = new Storage[o + n + staging.count()];
    for (int i = 0; i < held.length; i++) {
      held[i] =
          i < o
              ? outputs.get(i).storage()
              : i < o + n ? inputs.get(i - o).storage() : staging.storage(i - o - n);
    }
    work.hold(held);
  }

  private static void tell(Storage storage, CudaStream current) {
    if (storage instanceof CudaStorage c && c.stream() != current) {
      c.recordStream(current);
    }
  }

  private Duration timeoutOf(CollectiveOptions options) {
    Duration own = options.timeout();
    return own == null ? timeout : own;
  }

  // ---- several at once ----

  @Override
  public void startCoalescing() {
    Batch b = batch;
    if (b != null) {
      throw new IllegalStateException(
          "group " + group.describe() + " is coalescing already; end that first");
    }
    batch = new Batch(rank(), size());
  }

  private @Nullable Batch batchHere(String name, int device) {
    Batch b = batch;
    if (b == null || b.thread != Thread.currentThread()) {
      return null;
    }
    b.use(name, device);
    return b;
  }

  @Override
  public void endCoalescing() {
    Batch b = batch;
    if (b == null || b.thread != Thread.currentThread()) {
      throw new IllegalStateException("group " + group.describe() + " is not coalescing here");
    }
    batch = null;
    try {
      if (!b.works.isEmpty()) {
        communicators.collective(b.device()).launchAll(b.works, true, null, b.staging, b);
      }
    } catch (RuntimeException | Error e) {
      b.works.forEach(w -> w.fail(e));
      throw e;
    } finally {
      b.staging.close();
    }
  }

  // ---- parts ----

  @Override
  public boolean canDivide() {
    return communicators.only() != null && failure == null && !closed;
  }

  @Override
  public @Nullable Backend split(@Nullable GroupContext part, int color, int key) {
    checkUsable("split_group");
    NcclBackend made = part == null ? null : new NcclBackend(part);
    Communicators.split(this, made, color, key);
    return made;
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
    if (communicators.only() == null) {
      throw new IllegalStateException(
          "shrink_group: group "
              + group.describe()
              + " has no communicator yet; expected one that has been used, or a world with a bound"
              + " device");
    }
    NcclBackend made = new NcclBackend(rest);
    Communicators.shrink(this, made, excluded, abort);
    return made;
  }

  // ---- failures and the end ----

  /** An operation of this group failed on this rank; its caller gets the exception. */
  void failed(Throwable cause) {
    if (failure == null) {
      failure = cause;
    }
    communicators.abort(cause);
  }

  /** An operation that nobody waits for takes too long. */
  void overdue(NcclWork work) {
    Throwable late = work.timedOut();
    work.fail(late);
    actOn(late);
  }

  /** NCCL reports an error that no call returned; once. */
  void asyncError(NcclException error) {
    if (errorSeen.compareAndSet(false, true)) {
      onThread(
          () -> {
            RuntimeException cause = blame("a collective", error);
            if (failure == null) {
              failure = cause;
            }
            communicators.markFailed(cause);
            group.rankContext().operationFailed(cause);
          });
    }
  }

  /**
   * What is behind an error of NCCL. A peer that died closes its sockets, which NCCL may report
   * before the news of the death is here: that is waited for, a while.
   */
  RuntimeException blame(String operation, NcclException error) {
    if (error.code() != nccl.ncclRemoteError && error.code() != nccl.ncclSystemError) {
      return error;
    }
    long end = System.nanoTime() + NEWS_NANOS;
    while (System.nanoTime() < end) {
      Throwable f = failure;
      if (f instanceof PeerFailedException) {
        return unusable(operation, f);
      }
      LockSupport.parkNanos(this, 1_000_000);
    }
    return error;
  }

  /** As the error handling mode says. */
  private void actOn(Throwable cause) {
    onThread(() -> group.rankContext().operationFailed(cause));
  }

  /** Others are told, which takes its time. */
  private static void onThread(Runnable body) {
    Thread thread = new Thread(body, "weft-nccl-failure");
    thread.setDaemon(true);
    thread.start();
  }

  void peerFailed(int globalRank, Throwable cause) {
    if (!group.ranks().contains(globalRank) || globalRank == globalRank(rank())) {
      return;
    }
    PeerFailedException failed =
        new PeerFailedException(
            "NCCL operations of group "
                + group.describe()
                + " on rank "
                + globalRank(rank())
                + " cannot end: rank "
                + globalRank
                + " failed: "
                + cause.getMessage(),
            cause);
    if (failure == null) {
      failure = failed;
    }
    if (group.rankContext().abortsAfterFailures()) {
      communicators.abort(failed);
    } else {
      communicators.markFailed(failed);
    }
  }

  @Override
  public void abort(Throwable cause) {
    String text = "group " + group.describe() + " was aborted: " + cause;
    DistributedException aborted =
        cause instanceof PeerFailedException
            ? new PeerFailedException(text, cause)
            : new DistributedException(text, cause);
    if (failure == null) {
      failure = aborted;
    }
    communicators.abort(aborted);
  }

  @Override
  public void close(Duration limit) {
    closed = true;
    peers.remove(this);
    communicators.close(Deadline.after(limit));
    StridedTensor flag = barrierFlag;
    barrierFlag = null;
    if (flag != null) {
      flag.close();
    }
  }

  @Override
  public String toString() {
    return "nccl backend of group " + group.describe();
  }
}
