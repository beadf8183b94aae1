package dev.weft.c10d;

import dev.weft.c10d.debug.Watchdog;
import dev.weft.tensor.Tensor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.nd4j.linalg.api.ndarray.INDArray;

/**
 * The calling thread's rank and its collectives, as functions; the Java form of {@code
 * torch.distributed}. Any thread of a rank may call it ({@link RankContext#current} says which rank
 * a thread is).
 *
 * <p>Ranks in arguments are global ranks, whatever the group; a null group is the world. A
 * collective takes tensors or ND4J arrays of any order or view and writes its outputs in place;
 * {@link ProcessGroup} says the rest.
 */
public final class Distributed {
  /** How long operations may take unless a world, a group or a call says otherwise. */
  public static final Duration DEFAULT_TIMEOUT = Duration.ofMinutes(30);

  private Distributed() {}

  // ---- worlds ----

  /** Joins the world that the environment describes; without one, a world of one. */
  public static World init() {
    return init(InitOptions.DEFAULT);
  }

  /**
   * Joins a world.
   *
   * @throws IllegalStateException if this process is in one already
   * @throws RendezvousException if the ranks do not meet in time
   */
  public static World init(InitOptions options) {
    return Initialization.init(options);
  }

  /** True when the calling thread is a rank. */
  public static boolean isInitialized() {
    return RankContext.find().isPresent();
  }

  /** The group of all ranks. */
  public static ProcessGroup world() {
    return RankContext.current().world();
  }

  /** The calling rank. */
  public static int rank() {
    return RankContext.current().rank();
  }

  /** The number of ranks. */
  public static int worldSize() {
    return RankContext.current().worldSize();
  }

  /** Leaves the world: lets go of all groups and connections. Does nothing outside a world. */
  public static void destroy() {
    RankContext.find().ifPresent(c -> c.world().destroy());
  }

  // ---- groups ----

  /**
   * Makes a group of these ranks, of all without any. Only members need to call it; others get a
   * marker whose {@link ProcessGroup#isMember} is false.
   *
   * @throws IllegalArgumentException if a rank is outside the world or named twice
   */
  public static ProcessGroup newGroup(int... ranks) {
    int n = RankContext.current().worldSize();
    return newGroup(ranks.length == 0 ? range(0, n) : boxed(ranks), GroupOptions.DEFAULT);
  }

  /** Makes a group with options. */
  public static ProcessGroup newGroup(List<Integer> ranks, GroupOptions options) {
    return RankContext.current().groups().make(ranks, options);
  }

  /**
   * Divides the world into groups of neighbours.
   *
   * @throws IllegalArgumentException if the size does not divide the world's
   */
  public static Subgroups newSubgroups(int groupSize) {
    return newSubgroups(groupSize, GroupOptions.DEFAULT);
  }

  /** Divides the world into groups of neighbours, with options. */
  public static Subgroups newSubgroups(int groupSize, GroupOptions options) {
    RankContext context = RankContext.current();
    int n = context.worldSize();
    if (groupSize < 1 || groupSize > n || n % groupSize != 0) {
      throw new IllegalArgumentException(
          "groupSize is " + groupSize + "; expected a divisor of the world size " + n);
    }
    List<List<Integer>> lists = new ArrayList<>();
    for (int at = 0; at < n; at += groupSize) {
      lists.add(range(at, at + groupSize));
    }
    return context.groups().subgroups(lists, options);
  }

  /** Makes a group of each list; no rank may be in two. */
  public static Subgroups newSubgroupsByEnumeration(List<int[]> ranks) {
    return newSubgroupsByEnumeration(ranks, GroupOptions.DEFAULT);
  }

  /** Makes a group of each list, with options; no rank may be in two. */
  public static Subgroups newSubgroupsByEnumeration(List<int[]> ranks, GroupOptions options) {
    List<List<Integer>> lists = ranks.stream().map(Distributed::boxed).toList();
    return RankContext.current().groups().subgroups(lists, options);
  }

  /**
   * Splits a group; no rank may be in two parts.
   *
   * @param parent the group; null for the world
   * @param parts group ranks of the parent
   * @return this rank's part, or a marker where it is in none
   */
  public static ProcessGroup splitGroup(@Nullable ProcessGroup parent, List<int[]> parts) {
    return splitGroup(parent, parts, "");
  }

  /**
   * Splits a group; no rank may be in two parts.
   *
   * @param parent the group; null for the world
   * @param parts group ranks of the parent
   * @param description what the parts are for, as traces and reports show it
   * @return this rank's part, or a marker where it is in none
   */
  public static ProcessGroup splitGroup(
      @Nullable ProcessGroup parent, List<int[]> parts, String description) {
    ProcessGroup from = orWorld(parent);
    List<List<Integer>> lists =
        parts.stream().map(p -> Arrays.stream(p).map(from::globalRank).boxed().toList()).toList();
    GroupOptions options =
        GroupOptions.DEFAULT
            .withBackend(from.backendConfig())
            .withTimeout(from.timeout())
            .withDescription(description);
    Subgroups all = from.context().groups().subgroups(lists, options);
    ProcessGroup own = all.own();
    GroupDivision.split(from, all);
    if (own != null) {
      return own;
    }
    if (all.all().isEmpty()) {
      throw new IllegalArgumentException("parts is empty; expected at least one list of ranks");
    }
    return all.all().get(0);
  }

  /**
   * Makes a group of a group's ranks without some, from its own connections where the backend can:
   * with NCCL 2.27 or newer, after ranks have failed. Only the ranks that are left call it.
   *
   * @param group the group; null for the world
   * @param excluded its group ranks that are left out
   * @param abort whether operations under way are given up first: needed after a failure
   * @throws IllegalArgumentException if this rank is among the excluded, or none are
   * @throws UnsupportedOperationException if no backend of the group can do it
   */
  public static ProcessGroup shrinkGroup(
      @Nullable ProcessGroup group, List<Integer> excluded, boolean abort) {
    return GroupDivision.shrink(orWorld(group), excluded, abort);
  }

  // ---- collectives ----

  /** Reduces over all ranks of the world, in place. */
  public static Work allReduce(Tensor tensor, ReduceOp op) {
    return allReduce(tensor, op, null, CollectiveOptions.SYNC);
  }

  /** Reduces over all ranks, in place. */
  public static Work allReduce(
      Tensor tensor, ReduceOp op, @Nullable ProcessGroup group, CollectiveOptions options) {
    return orWorld(group).allReduce(tensor, op, options);
  }

  /** Reduces over all ranks of the world, in place. */
  public static Work allReduce(INDArray array, ReduceOp op) {
    return allReduce(NdArrays.tensor(array), op, null, CollectiveOptions.SYNC);
  }

  /** Reduces over all ranks, in place. */
  public static Work allReduce(
      INDArray array, ReduceOp op, @Nullable ProcessGroup group, CollectiveOptions options) {
    return allReduce(NdArrays.tensor(array), op, group, options);
  }

  /** Copies the root's tensor into every rank's. */
  public static Work broadcast(Tensor tensor, int root) {
    return broadcast(tensor, root, null, CollectiveOptions.SYNC);
  }

  /** Copies the root's tensor into every rank's. */
  public static Work broadcast(
      Tensor tensor, int root, @Nullable ProcessGroup group, CollectiveOptions options) {
    ProcessGroup g = orWorld(group);
    return g.broadcast(tensor, inGroup(g, root), options);
  }

  /** Copies the root's array into every rank's. */
  public static Work broadcast(INDArray array, int root) {
    return broadcast(NdArrays.tensor(array), root, null, CollectiveOptions.SYNC);
  }

  /** Copies the root's array into every rank's. */
  public static Work broadcast(
      INDArray array, int root, @Nullable ProcessGroup group, CollectiveOptions options) {
    return broadcast(NdArrays.tensor(array), root, group, options);
  }

  /** Reduces over all ranks into the root's tensor. */
  public static Work reduce(
      Tensor tensor,
      int root,
      ReduceOp op,
      @Nullable ProcessGroup group,
      CollectiveOptions options) {
    ProcessGroup g = orWorld(group);
    return g.reduce(tensor, inGroup(g, root), op, options);
  }

  /** Reduces over all ranks into the root's array. */
  public static Work reduce(
      INDArray array,
      int root,
      ReduceOp op,
      @Nullable ProcessGroup group,
      CollectiveOptions options) {
    return reduce(NdArrays.tensor(array), root, op, group, options);
  }

  /** Collects every rank's input; outputs are tensors or arrays, by group rank. */
  public static Work allGather(
      List<?> outputs, Tensor input, @Nullable ProcessGroup group, CollectiveOptions options) {
    return orWorld(group).allGather(NdArrays.tensors(outputs), input, options);
  }

  /** Collects every rank's input; outputs are tensors or arrays, by group rank. */
  public static Work allGather(
      List<?> outputs, INDArray input, @Nullable ProcessGroup group, CollectiveOptions options) {
    return allGather(outputs, NdArrays.tensor(input), group, options);
  }

  /** Collects every rank's input in one tensor. */
  public static Work allGatherIntoTensor(
      Tensor output, Tensor input, @Nullable ProcessGroup group, CollectiveOptions options) {
    return orWorld(group).allGatherIntoTensor(output, input, options);
  }

  /** Collects every rank's input in one array. */
  public static Work allGatherIntoTensor(
      INDArray output, INDArray input, @Nullable ProcessGroup group, CollectiveOptions options) {
    return allGatherIntoTensor(NdArrays.tensor(output), NdArrays.tensor(input), group, options);
  }

  /** Reduces each position of the inputs to the rank of that position. */
  public static Work reduceScatter(
      Tensor output,
      List<?> inputs,
      ReduceOp op,
      @Nullable ProcessGroup group,
      CollectiveOptions options) {
    return orWorld(group).reduceScatter(output, NdArrays.tensors(inputs), op, options);
  }

  /** Reduces each position of the inputs to the rank of that position. */
  public static Work reduceScatter(
      INDArray output,
      List<?> inputs,
      ReduceOp op,
      @Nullable ProcessGroup group,
      CollectiveOptions options) {
    return reduceScatter(NdArrays.tensor(output), inputs, op, group, options);
  }

  /** Reduces an input of size times as many elements; each rank gets its part. */
  public static Work reduceScatterTensor(
      Tensor output,
      Tensor input,
      ReduceOp op,
      @Nullable ProcessGroup group,
      CollectiveOptions options) {
    return orWorld(group).reduceScatterTensor(output, input, op, options);
  }

  /** Reduces an input of size times as many elements; each rank gets its part. */
  public static Work reduceScatterTensor(
      INDArray output,
      INDArray input,
      ReduceOp op,
      @Nullable ProcessGroup group,
      CollectiveOptions options) {
    return reduceScatterTensor(NdArrays.tensor(output), NdArrays.tensor(input), op, group, options);
  }

  /** Sends each input to the rank of its position; tensors or arrays, by group rank. */
  public static Work allToAll(
      List<?> outputs, List<?> inputs, @Nullable ProcessGroup group, CollectiveOptions options) {
    return orWorld(group).allToAll(NdArrays.tensors(outputs), NdArrays.tensors(inputs), options);
  }

  /** Exchanges rows between all ranks; null splits mean equal parts. */
  public static Work allToAllSingle(
      Tensor output,
      Tensor input,
      long @Nullable [] outputSplits,
      long @Nullable [] inputSplits,
      @Nullable ProcessGroup group,
      CollectiveOptions options) {
    return orWorld(group).allToAllSingle(output, input, outputSplits, inputSplits, options);
  }

  /** Exchanges rows between all ranks; null splits mean equal parts. */
  public static Work allToAllSingle(
      INDArray output,
      INDArray input,
      long @Nullable [] outputSplits,
      long @Nullable [] inputSplits,
      @Nullable ProcessGroup group,
      CollectiveOptions options) {
    return allToAllSingle(
        NdArrays.tensor(output), NdArrays.tensor(input), outputSplits, inputSplits, group, options);
  }

  /** Collects every rank's input at the root; outputs are null elsewhere. */
  public static Work gather(
      Tensor input,
      @Nullable List<?> outputs,
      int root,
      @Nullable ProcessGroup group,
      CollectiveOptions options) {
    ProcessGroup g = orWorld(group);
    return g.gather(input, NdArrays.tensorsOrNull(outputs), inGroup(g, root), options);
  }

  /** Collects every rank's input at the root; outputs are null elsewhere. */
  public static Work gather(
      INDArray input,
      @Nullable List<?> outputs,
      int root,
      @Nullable ProcessGroup group,
      CollectiveOptions options) {
    return gather(NdArrays.tensor(input), outputs, root, group, options);
  }

  /** Gives each rank one of the root's inputs; they are null elsewhere. */
  public static Work scatter(
      Tensor output,
      @Nullable List<?> inputs,
      int root,
      @Nullable ProcessGroup group,
      CollectiveOptions options) {
    ProcessGroup g = orWorld(group);
    return g.scatter(output, NdArrays.tensorsOrNull(inputs), inGroup(g, root), options);
  }

  /** Gives each rank one of the root's inputs; they are null elsewhere. */
  public static Work scatter(
      INDArray output,
      @Nullable List<?> inputs,
      int root,
      @Nullable ProcessGroup group,
      CollectiveOptions options) {
    return scatter(NdArrays.tensor(output), inputs, root, group, options);
  }

  /** Returns when all ranks of the world have called it. */
  public static Work barrier() {
    return barrier(null, CollectiveOptions.SYNC);
  }

  /** Returns when all ranks have called it. */
  public static Work barrier(@Nullable ProcessGroup group, CollectiveOptions options) {
    return orWorld(group).barrier(options);
  }

  // ---- point to point ----

  /** Sends a tensor in the world; returns when the destination has taken it. */
  public static Work send(Tensor tensor, int destination, int tag) {
    return send(tensor, destination, tag, null, CollectiveOptions.SYNC);
  }

  /** Sends a tensor. */
  public static Work send(
      Tensor tensor,
      int destination,
      int tag,
      @Nullable ProcessGroup group,
      CollectiveOptions options) {
    ProcessGroup g = orWorld(group);
    return g.send(tensor, inGroup(g, destination), tag, options);
  }

  /** Sends an array. */
  public static Work send(
      INDArray array,
      int destination,
      int tag,
      @Nullable ProcessGroup group,
      CollectiveOptions options) {
    return send(NdArrays.tensor(array), destination, tag, group, options);
  }

  /** Receives a tensor in the world. */
  public static Work recv(Tensor tensor, int source, int tag) {
    return recv(tensor, source, tag, null, CollectiveOptions.SYNC);
  }

  /** Receives a tensor. */
  public static Work recv(
      Tensor tensor, int source, int tag, @Nullable ProcessGroup group, CollectiveOptions options) {
    ProcessGroup g = orWorld(group);
    int from = source == ProcessGroup.ANY_SOURCE ? source : inGroup(g, source);
    return g.recv(tensor, from, tag, options);
  }

  /** Receives an array. */
  public static Work recv(
      INDArray array,
      int source,
      int tag,
      @Nullable ProcessGroup group,
      CollectiveOptions options) {
    return recv(NdArrays.tensor(array), source, tag, group, options);
  }

  /**
   * Posts sends and receives together, so that a ring or an exchange cannot block itself.
   *
   * @return a work for each, in the same order
   * @throws IllegalArgumentException if the list is empty or its groups differ
   */
  public static List<Work> batchIsendIrecv(List<P2POp> ops) {
    return Coalesced.messages(ops, CollectiveOptions.ASYNC);
  }

  // ---- debugging ----

  /**
   * Writes this rank's flight recorder where {@code WEFT_FR_DUMP_TEMP_FILE} says.
   *
   * @return the pickle, which PyTorch's tools and {@code weft fr} read
   * @throws UncheckedIOException if it cannot be written
   */
  public static Path dumpFlightRecorder() {
    return dumpFlightRecorder(null);
  }

  /**
   * Writes this rank's flight recorder.
   *
   * @param prefix the file name but for the rank's digits; null for the configured one
   * @return the pickle, which PyTorch's tools and {@code weft fr} read
   * @throws UncheckedIOException if it cannot be written
   */
  public static Path dumpFlightRecorder(@Nullable String prefix) {
    try {
      return RankContext.current().flightRecorder().dump(prefix);
    } catch (IOException e) {
      throw new UncheckedIOException("the flight recorder cannot be written: " + e, e);
    }
  }

  /**
   * Keeps the watchdog from reporting this rank's outstanding calls until the returned object is
   * closed; their time starts anew then. Calls between which the rank is busy need no pause.
   */
  public static Watchdog.Pause pauseWatchdog() {
    return RankContext.current().failures().watchdog().pause();
  }

  private static ProcessGroup orWorld(@Nullable ProcessGroup group) {
    return group == null ? world() : group;
  }

  /** A marker's collectives do nothing, so their root need not be a member. */
  private static int inGroup(ProcessGroup group, int globalRank) {
    return group.isMember() ? group.groupRank(globalRank) : 0;
  }

  private static List<Integer> boxed(int[] ranks) {
    return Arrays.stream(ranks).boxed().toList();
  }

  private static List<Integer> range(int from, int to) {
    return IntStream.range(from, to).boxed().toList();
  }
}
