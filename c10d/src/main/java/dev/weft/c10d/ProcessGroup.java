package dev.weft.c10d;

import dev.weft.c10d.debug.FlightRecorder;
import dev.weft.c10d.debug.GroupLog;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.cuda.Cuda;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Ranks that communicate, and the order of their collectives. Any thread of the rank may call it,
 * but all members must make the same calls in the same order, so use a group from one thread at a
 * time. Ranks in arguments are group ranks: positions in {@link #ranks()}.
 *
 * <p>Collectives write their output tensors in place, in any layout, and return a {@link Work}.
 * Without options a call returns when the operation is done and throws when it failed; with {@link
 * CollectiveOptions#ASYNC} it returns at once, and its tensors must not be touched until the work
 * is done. Bad arguments are {@link IllegalArgumentException}s on the calling rank; arguments that
 * differ between ranks are a {@link MismatchException} on every rank, a rank that does not come is
 * an {@link OperationTimeoutException}, one that died a {@link PeerFailedException}. After a failed
 * collective the group is unusable and says so.
 *
 * <p>Each call is an operator {@code c10d.*} of the catalogue. Its inputs are the outputs of the
 * call, then its inputs; its attributes are the group, the {@link ReduceOp} or null, the root or
 * peer or null, and the number of output tensors. On a rank that is no member, collectives do
 * nothing, as in PyTorch.
 */
public final class ProcessGroup {
  /** Receive from whichever rank sends. */
  public static final int ANY_SOURCE = -1;

  private final Membership members;
  private final GroupBackends backends;
  private final AtomicLong monitoredBarriers = new AtomicLong();
  private volatile @Nullable GroupLog log;

  ProcessGroup(Membership members, GroupBackends backends) {
    this.members = members;
    this.backends = backends;
  }

  // ---- identity ----

  /** The name: the same on all members, different from all other groups'. */
  public String name() {
    return members.name();
  }

  /** What the group is for, as its maker said; for messages. */
  public String description() {
    return members.description();
  }

  /** This rank's position in the group, or -1 where it is no member. */
  public int rank() {
    return members.rank();
  }

  /** The number of members, or -1 where this rank is none. */
  public int size() {
    return isMember() ? members.size() : -1;
  }

  /** False for the marker that ranks outside the group get. */
  public boolean isMember() {
    return members.rank() >= 0;
  }

  /** Global ranks in group-rank order. */
  public List<Integer> ranks() {
    return members.ranks();
  }

  /**
   * The global rank of a group rank.
   *
   * @throws IllegalArgumentException if it is outside [0, size)
   */
  public int globalRank(int groupRank) {
    return members.globalRank(groupRank);
  }

  /**
   * The group rank of a global rank.
   *
   * @throws IllegalArgumentException if that rank is no member
   */
  public int groupRank(int globalRank) {
    return members.groupRank(globalRank);
  }

  /** The state of the rank this object belongs to. */
  public RankContext context() {
    return members.context();
  }

  /** How long an operation may take unless its call says otherwise. */
  public Duration timeout() {
    return members.timeout();
  }

  /**
   * The backend of a device.
   *
   * @throws IllegalArgumentException if the group has none for its type
   */
  public Backend backend(Device device) {
    return backends.of(device.type());
  }

  /**
   * The backend of a device type such as {@code cpu}.
   *
   * @throws IllegalArgumentException if the group has none for it
   */
  public Backend backend(String deviceType) {
    return backends.of(deviceType);
  }

  /**
   * Where small tensors of a caller's own lie that are to travel in this group: the CPU where the
   * group has a backend for it, else the calling thread's current CUDA device.
   */
  public Device controlDevice() {
    if (backends.deviceTypes().contains("cpu")) {
      return Device.CPU;
    }
    Device bound = members.context().boundDevice();
    return bound != null ? bound : Device.cuda(Cuda.currentDevice());
  }

  /** The backends as one string, such as {@code cpu:host}. */
  public String backendConfig() {
    return backends.config();
  }

  /** Lets the group go: waits a bounded time for what is under way. May be repeated. */
  public void destroy() {
    members.context().groups().destroy(this);
  }

  /** Ends everything under way and to come with this failure. */
  public void abort(Throwable cause) {
    backends.abort(cause);
  }

  GroupBackends backends() {
    return backends;
  }

  /** Where the flight recorder keeps this group's calls; null when it is off. */
  @Nullable GroupLog log() {
    FlightRecorder recorder = members.context().flightRecorder();
    if (!recorder.isEnabled()) {
      return null;
    }
    GroupLog there = log;
    return there != null ? there : makeLog(recorder);
  }

  private synchronized GroupLog makeLog(FlightRecorder recorder) {
    GroupLog there = log;
    if (there == null) {
      // PyTorch's analyzer knows the names of its own libraries alone.
      String library = backends.config().contains("nccl") ? "nccl" : "gloo";
      boolean all = this == members.context().world();
      String text = description().isEmpty() ? (all ? "default_pg" : "undefined") : description();
      there = recorder.group(name(), text, ranks(), rank(), library);
      log = there;
      members.context().failures().watch(true);
    }
    return there;
  }

  // ---- collectives ----

  /** Reduces a tensor over all ranks, in place. */
  public Work allReduce(Tensor tensor, ReduceOp op) {
    return allReduce(tensor, op, CollectiveOptions.SYNC);
  }

  /** Reduces a tensor over all ranks, in place. */
  public Work allReduce(Tensor tensor, ReduceOp op, CollectiveOptions options) {
    return Collectives.allReduce(this, tensor, op, options);
  }

  /** Copies the tensor of group rank {@code root} into every rank's. */
  public Work broadcast(Tensor tensor, int root) {
    return broadcast(tensor, root, CollectiveOptions.SYNC);
  }

  /** Copies the tensor of group rank {@code root} into every rank's. */
  public Work broadcast(Tensor tensor, int root, CollectiveOptions options) {
    return Collectives.broadcast(this, tensor, root, options);
  }

  /** Reduces a tensor over all ranks into that of {@code root}; the others keep theirs. */
  public Work reduce(Tensor tensor, int root, ReduceOp op) {
    return reduce(tensor, root, op, CollectiveOptions.SYNC);
  }

  /** Reduces a tensor over all ranks into that of {@code root}; the others keep theirs. */
  public Work reduce(Tensor tensor, int root, ReduceOp op, CollectiveOptions options) {
    return Collectives.reduce(this, tensor, root, op, options);
  }

  /** Collects every rank's input in {@code outputs}, by rank; sizes may differ between ranks. */
  public Work allGather(List<? extends Tensor> outputs, Tensor input) {
    return allGather(outputs, input, CollectiveOptions.SYNC);
  }

  /** Collects every rank's input in {@code outputs}, by rank; sizes may differ between ranks. */
  public Work allGather(List<? extends Tensor> outputs, Tensor input, CollectiveOptions options) {
    return Collectives.allGather(this, outputs, input, options);
  }

  /** Collects every rank's input in one tensor of size times as many elements, row-major. */
  public Work allGatherIntoTensor(Tensor output, Tensor input) {
    return allGatherIntoTensor(output, input, CollectiveOptions.SYNC);
  }

  /** Collects every rank's input in one tensor of size times as many elements, row-major. */
  public Work allGatherIntoTensor(Tensor output, Tensor input, CollectiveOptions options) {
    return Collectives.allGatherIntoTensor(this, output, input, options);
  }

  /** Reduces all ranks' {@code inputs.get(r)} into the output of rank r. */
  public Work reduceScatter(Tensor output, List<? extends Tensor> inputs, ReduceOp op) {
    return reduceScatter(output, inputs, op, CollectiveOptions.SYNC);
  }

  /** Reduces all ranks' {@code inputs.get(r)} into the output of rank r. */
  public Work reduceScatter(
      Tensor output, List<? extends Tensor> inputs, ReduceOp op, CollectiveOptions options) {
    return Collectives.reduceScatter(this, output, inputs, op, options);
  }

  /** Reduces an input of size times as many elements; rank r gets the r-th part, row-major. */
  public Work reduceScatterTensor(Tensor output, Tensor input, ReduceOp op) {
    return reduceScatterTensor(output, input, op, CollectiveOptions.SYNC);
  }

  /** Reduces an input of size times as many elements; rank r gets the r-th part, row-major. */
  public Work reduceScatterTensor(
      Tensor output, Tensor input, ReduceOp op, CollectiveOptions options) {
    return Collectives.reduceScatterTensor(this, output, input, op, options);
  }

  /** Sends {@code inputs.get(r)} to rank r and receives {@code outputs.get(r)} from it. */
  public Work allToAll(List<? extends Tensor> outputs, List<? extends Tensor> inputs) {
    return allToAll(outputs, inputs, CollectiveOptions.SYNC);
  }

  /** Sends {@code inputs.get(r)} to rank r and receives {@code outputs.get(r)} from it. */
  public Work allToAll(
      List<? extends Tensor> outputs, List<? extends Tensor> inputs, CollectiveOptions options) {
    return Collectives.allToAll(this, outputs, inputs, options);
  }

  /**
   * Exchanges rows (parts along dimension 0) between all ranks.
   *
   * @param outputSplits rows received from each rank, or null for equal parts
   * @param inputSplits rows sent to each rank, or null for equal parts
   */
  public Work allToAllSingle(
      Tensor output, Tensor input, long @Nullable [] outputSplits, long @Nullable [] inputSplits) {
    return allToAllSingle(output, input, outputSplits, inputSplits, CollectiveOptions.SYNC);
  }

  /**
   * Exchanges rows (parts along dimension 0) between all ranks.
   *
   * @param outputSplits rows received from each rank, or null for equal parts
   * @param inputSplits rows sent to each rank, or null for equal parts
   */
  public Work allToAllSingle(
      Tensor output,
      Tensor input,
      long @Nullable [] outputSplits,
      long @Nullable [] inputSplits,
      CollectiveOptions options) {
    return Collectives.allToAllSingle(this, output, input, outputSplits, inputSplits, options);
  }

  /** Collects every rank's input at {@code root}; {@code outputs} is null elsewhere. */
  public Work gather(Tensor input, @Nullable List<? extends Tensor> outputs, int root) {
    return gather(input, outputs, root, CollectiveOptions.SYNC);
  }

  /** Collects every rank's input at {@code root}; {@code outputs} is null elsewhere. */
  public Work gather(
      Tensor input, @Nullable List<? extends Tensor> outputs, int root, CollectiveOptions options) {
    return Collectives.gather(this, input, outputs, root, options);
  }

  /** Gives rank r the {@code inputs.get(r)} of {@code root}; {@code inputs} is null elsewhere. */
  public Work scatter(Tensor output, @Nullable List<? extends Tensor> inputs, int root) {
    return scatter(output, inputs, root, CollectiveOptions.SYNC);
  }

  /** Gives rank r the {@code inputs.get(r)} of {@code root}; {@code inputs} is null elsewhere. */
  public Work scatter(
      Tensor output, @Nullable List<? extends Tensor> inputs, int root, CollectiveOptions options) {
    return Collectives.scatter(this, output, inputs, root, options);
  }

  /** Returns when all ranks have called it. */
  public Work barrier() {
    return barrier(CollectiveOptions.SYNC);
  }

  /** Returns, or is done, when all ranks have called it. */
  public Work barrier(CollectiveOptions options) {
    return Collectives.barrier(this, options);
  }

  /**
   * A barrier that says who is missing: group rank 0 waits for the others and answers them. It goes
   * over the store, so it works where the backend's own connections do not. Returns when all have
   * come.
   *
   * @param timeout how long to wait, instead of the group's timeout
   * @param waitAllRanks whether group rank 0 names all missing ranks, or the first one
   * @throws OperationTimeoutException on every rank that called it, if one did not
   */
  public void monitoredBarrier(Duration timeout, boolean waitAllRanks) {
    if (isMember()) {
      new MonitoredBarrier(this, monitoredBarriers.incrementAndGet(), timeout).run(waitAllRanks);
    } else {
      NonMembers.warn(this, "monitored_barrier");
    }
  }

  // ---- several at once ----

  /** Reduces several tensors over all ranks, in place, as one work. */
  public Work allReduceCoalesced(
      List<? extends Tensor> tensors, ReduceOp op, CollectiveOptions options) {
    return Coalesced.allReduce(this, tensors, op, options);
  }

  /** Does {@link #allGatherIntoTensor} for each pair, as one work. */
  public Work allGatherIntoTensorCoalesced(
      List<? extends Tensor> outputs, List<? extends Tensor> inputs, CollectiveOptions options) {
    return Coalesced.allGatherIntoTensor(this, outputs, inputs, options);
  }

  /** Does {@link #reduceScatterTensor} for each pair, as one work. */
  public Work reduceScatterTensorCoalesced(
      List<? extends Tensor> outputs,
      List<? extends Tensor> inputs,
      ReduceOp op,
      CollectiveOptions options) {
    return Coalesced.reduceScatterTensor(this, outputs, inputs, op, options);
  }

  /**
   * The sum of all ranks' sparse tensors, each coordinate once; returns when it is there.
   *
   * @throws IllegalArgumentException if the operation is not a sum
   * @throws MismatchException if the ranks differ in shape or dtype
   */
  public SparseCoo allReduceSparse(SparseCoo tensor, ReduceOp op) {
    return SparseReduction.sum(this, tensor, op, CollectiveOptions.SYNC);
  }

  // ---- point to point ----

  /** Sends a tensor; returns when {@code destination} has taken it. */
  public Work send(Tensor tensor, int destination, int tag) {
    return Collectives.send(this, tensor, destination, tag, CollectiveOptions.SYNC);
  }

  /** Receives a tensor of the same number of elements, dtype and tag from {@code source}. */
  public Work recv(Tensor tensor, int source, int tag) {
    return Collectives.recv(this, tensor, source, tag, CollectiveOptions.SYNC);
  }

  /** Posts a send, which never blocks; the tensor must not change until the work is done. */
  public Work isend(Tensor tensor, int destination, int tag) {
    return Collectives.send(this, tensor, destination, tag, CollectiveOptions.ASYNC);
  }

  /** Posts a receive, which never blocks; the tensor must not be read until the work is done. */
  public Work irecv(Tensor tensor, int source, int tag) {
    return Collectives.recv(this, tensor, source, tag, CollectiveOptions.ASYNC);
  }

  /** Sends a tensor as the options say. */
  public Work send(Tensor tensor, int destination, int tag, CollectiveOptions options) {
    return Collectives.send(this, tensor, destination, tag, options);
  }

  /** Receives a tensor as the options say. */
  public Work recv(Tensor tensor, int source, int tag, CollectiveOptions options) {
    return Collectives.recv(this, tensor, source, tag, options);
  }

  /** The group in a message, such as {@code 'tp' of ranks [0, 1]}. */
  public String describe() {
    return members.describe();
  }

  @Override
  public String toString() {
    return "ProcessGroup("
        + members.describe()
        + (isMember() ? ", rank " + rank() : ", not a member")
        + ", "
        + backends.config()
        + ")";
  }
}
