package dev.weft.c10d.nccl;

import static org.bytedeco.cuda.global.nccl.ncclCommInitRankConfig;
import static org.bytedeco.cuda.global.nccl.ncclCommShrink;
import static org.bytedeco.cuda.global.nccl.ncclCommSplit;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.GroupContext;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.cuda.CudaStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntUnaryOperator;
import org.bytedeco.cuda.global.nccl;
import org.bytedeco.cuda.nccl.ncclUniqueId;
import org.bytedeco.javacpp.IntPointer;
import org.jspecify.annotations.Nullable;

/**
 * The communicators of one group on one rank, made when first used: one for each device, and one
 * for each pair of ranks that exchange messages outside a batch. Thread-safe.
 */
final class Communicators {
  private final NcclGroup group;
  private final GroupContext context;
  private final Object creation = new Object();
  private final Map<Integer, PairChannel> pairs = new ConcurrentHashMap<>();
  private volatile @Nullable NcclCommunicator[] byDevice = new @Nullable NcclCommunicator[1];
  private int collectiveNumber;
  private int splitNumber;
  // Of all kinds; guarded by itself. Once closed, a late one is closed at once.
  private final List<NcclCommunicator> all = new ArrayList<>();
  private boolean closed;

  Communicators(NcclGroup group, GroupContext context) {
    this.group = group;
    this.context = context;
  }

  /** The communicator of a device. */
  NcclCommunicator collective(int device) {
    NcclCommunicator there = find(device);
    return there != null ? there : make(device);
  }

  private @Nullable NcclCommunicator find(int device) {
    @Nullable NcclCommunicator[] known = byDevice;
    return device < known.length ? known[device] : null;
  }

  /** The one communicator of a device that there is, or null. */
  @Nullable NcclCommunicator only() {
    @Nullable NcclCommunicator found = null;
    for (NcclCommunicator c : byDevice) {
      if (c != null) {
        found = c;
      }
    }
    return found;
  }

  private NcclCommunicator make(int device) {
    synchronized (creation) {
      NcclCommunicator there = find(device);
      if (there != null) {
        return there;
      }
      DeviceClaims.claim(context.rankContext(), device);
      NcclCommunicator made =
          meet(
              String.valueOf(device),
              "nccl/" + context.name() + "/" + collectiveNumber++,
              device,
              context.groupRank(),
              context.size(),
              group::globalRank);
      put(made);
      return made;
    }
  }

  private void put(NcclCommunicator made) {
    @Nullable NcclCommunicator[] more =
        Arrays.copyOf(byDevice, Math.max(byDevice.length, made.device() + 1));
    more[made.device()] = made;
    byDevice = more;
  }

  /** Ranks meet through the store, then NCCL connects them. */
  private NcclCommunicator meet(
      String key, String storeKey, int device, int rank, int size, IntUnaryOperator globalRanks) {
    group.checkUsable("making a communicator");
    Deadline deadline = Deadline.after(group.timeout());
    Cuda.bind(device);
    ncclUniqueId id =
        UniqueIds.share(
            group, context.rankContext().store(), storeKey, rank, size, globalRanks, deadline);
    try (NcclConfig config = new NcclConfig(group.options(), context.name())) {
      return keep(
          Objects.requireNonNull(
              new CommunicatorMaker(
                      group, key, device, rank, size, "ncclCommInitRankConfig", deadline, null)
                  .make(cell -> ncclCommInitRankConfig(cell, size, id, rank, config.pointer()))));
    } finally {
      id.close();
    }
  }

  private NcclCommunicator keep(NcclCommunicator made) {
    boolean late;
    synchronized (all) {
      all.add(made);
      late = closed;
    }
    Throwable failure = group.failure();
    if (failure != null) {
      made.abort(failure);
    }
    if (late) {
      made.end().close(Duration.ZERO);
    }
    return made;
  }

  // ---- pairs ----

  /** The way to a peer, which has a communicator of its own. */
  PairChannel pair(int peer) {
    PairChannel there = pairs.get(peer);
    return there != null
        ? there
        : pairs.computeIfAbsent(peer, p -> new PairChannel(group, this, context.groupRank(), p));
  }

  /** Makes the communicator of a pair; its lower group rank is rank 0 there. */
  NcclCommunicator makePair(int peer, int device) {
    int me = context.groupRank();
    int low = Math.min(me, peer);
    int high = Math.max(me, peer);
    String key = low + ":" + high;
    DeviceClaims.claim(context.rankContext(), device);
    return meet(
        key,
        "nccl/" + context.name() + "/" + key,
        device,
        me == low ? 0 : 1,
        2,
        r -> group.globalRank(r == 0 ? low : high));
  }

  // ---- from another group's ----

  /**
   * Takes part in a split of a parent's communicator, as all of the parent's ranks do.
   *
   * @param part the group of this rank's part, or null where it is in none
   */
  static void split(NcclGroup parent, @Nullable NcclGroup part, int color, int key) {
    NcclCommunicator from = Objects.requireNonNull(parent.communicators().only());
    NcclGroup owner = part == null ? parent : part;
    Deadline deadline = Deadline.after(parent.timeout());
    GroupContext context = parent.communicators().context;
    new Arrivals(parent.member(), context.rankContext().store(), deadline)
        .await(
            "nccl/" + context.name() + "/split/" + parent.communicators().splitNumber++,
            "split_group",
            parent.rank(),
            parent.size(),
            parent::globalRank);
    from.use().lock();
    try (NcclConfig config = new NcclConfig(owner.options(), owner.groupName())) {
      NcclCommunicator made =
          new CommunicatorMaker(
                  owner,
                  String.valueOf(from.device()),
                  from.device(),
                  owner.rank(),
                  part == null ? 0 : owner.size(),
                  "ncclCommSplit",
                  deadline,
                  from.handle())
              .make(
                  cell ->
                      ncclCommSplit(
                          from.handle(),
                          part == null ? nccl.NCCL_SPLIT_NOCOLOR : color,
                          key,
                          cell,
                          config.pointer()));
      if (made != null && part != null) {
        part.communicators().adopt(made);
      }
    } catch (OperationTimeoutException e) {
      parent.failed(e); // a thread is inside NCCL with its communicator, until that is aborted
      throw e;
    } finally {
      from.use().unlock();
    }
  }

  /** Takes part in making a communicator of the ranks that are left, as all of these do. */
  static void shrink(NcclGroup parent, NcclGroup rest, int[] excluded, boolean abort) {
    NcclCommunicator from = Objects.requireNonNull(parent.communicators().only());
    Deadline deadline = Deadline.after(parent.timeout());
    GroupContext context = rest.communicators().context;
    new Arrivals(rest.member(), context.rankContext().store(), deadline)
        .await(
            "nccl/" + context.name() + "/shrink",
            "shrink_group",
            rest.rank(),
            rest.size(),
            rest::globalRank);
    from.use().lock();
    try (NcclConfig config = new NcclConfig(rest.options(), rest.groupName());
        IntPointer ranks = new IntPointer(excluded)) {
      NcclCommunicator made =
          new CommunicatorMaker(
                  rest,
                  String.valueOf(from.device()),
                  from.device(),
                  rest.rank(),
                  rest.size(),
                  "ncclCommShrink",
                  deadline,
                  from.handle())
              .make(
                  cell ->
                      ncclCommShrink(
                          from.handle(),
                          ranks,
                          excluded.length,
                          cell,
                          config.pointer(),
                          abort ? nccl.NCCL_SHRINK_ABORT : nccl.NCCL_SHRINK_DEFAULT));
      rest.communicators().adopt(Objects.requireNonNull(made));
    } catch (OperationTimeoutException e) {
      parent.failed(e); // as in a split
      throw e;
    } finally {
      from.use().unlock();
    }
  }

  private void adopt(NcclCommunicator made) {
    synchronized (creation) {
      put(keep(made));
    }
  }

  // ---- the end ----

  void abort(Throwable cause) {
    snapshot().forEach(c -> c.abort(cause));
    pairs.values().forEach(p -> p.abort(cause));
  }

  void markFailed(Throwable cause) {
    snapshot().forEach(c -> c.markFailed(cause));
    pairs.values().forEach(p -> p.abort(cause));
  }

  void close(Deadline deadline) {
    synchronized (all) {
      closed = true;
    }
    pairs.values().forEach(PairChannel::close);
    List<NcclCommunicator> open = snapshot();
    // All at once: ranks may let their communicators go in any order.
    open.forEach(c -> c.end().beginClose(deadline));
    open.forEach(c -> c.end().close(deadline.remaining()));
  }

  private List<NcclCommunicator> snapshot() {
    synchronized (all) {
      return List.copyOf(all);
    }
  }

  /** The device whose communicator there is, else the current one. */
  int deviceInUse() {
    NcclCommunicator c = only();
    return c != null ? c.device() : CudaStream.current().device();
  }
}
