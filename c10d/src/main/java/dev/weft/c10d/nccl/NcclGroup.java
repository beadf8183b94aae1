package dev.weft.c10d.nccl;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.GroupContext;
import dev.weft.c10d.PeerFailedException;
import dev.weft.tensor.Device;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.bytedeco.cuda.global.nccl;
import org.jspecify.annotations.Nullable;

/**
 * What the classes of one group on one rank share: its options and communicators, the batch that is
 * open, and what has failed. Thread-safe.
 */
final class NcclGroup {
  private static final Duration DEFAULT_TIMEOUT = Duration.ofMinutes(10);
  private static final long NEWS_NANOS = 3_000_000_000L;

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

  NcclGroup(GroupContext group) {
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

  /** For the group of all ranks: connects to them, and makes the bound device's communicator. */
  void begin() {
    if (group.size() == group.rankContext().worldSize()) {
      peers.connect(timeout);
      Device bound = boundDevice();
      if (bound != null && group.name().equals("world")) {
        NcclCommunicator unused = communicators.collective(bound.index());
      }
    }
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

  /** The device that the rank is bound to, if any. */
  @Nullable Device boundDevice() {
    return group.rankContext().boundDevice();
  }

  long nextSequence() {
    return sequence.incrementAndGet();
  }

  boolean isUsable() {
    return failure == null && !closed;
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

  // ---- several at once ----

  void startCoalescing() {
    Batch b = batch;
    if (b != null) {
      throw new IllegalStateException(
          "group " + group.describe() + " is coalescing already; end that first");
    }
    batch = new Batch(rank(), size());
  }

  /** The batch that this thread puts an operation into; null where it goes by itself. */
  @Nullable Batch batchHere(String name, int device) {
    Batch b = batch;
    if (b == null || b.thread != Thread.currentThread()) {
      return null;
    }
    b.use(name, device);
    return b;
  }

  /** Ends the open batch of this thread, and gives it. */
  Batch endCoalescing() {
    Batch b = batch;
    if (b == null || b.thread != Thread.currentThread()) {
      throw new IllegalStateException("group " + group.describe() + " is not coalescing here");
    }
    batch = null;
    return b;
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

  /** Ends what is under way, and everything to come. */
  void abort(Throwable cause) {
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

  void close(Duration limit) {
    closed = true;
    peers.remove(this);
    communicators.close(Deadline.after(limit));
  }
}
