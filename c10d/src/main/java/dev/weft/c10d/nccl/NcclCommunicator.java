package dev.weft.c10d.nccl;

import static org.bytedeco.cuda.global.nccl.ncclCommGetAsyncError;
import static org.bytedeco.cuda.global.nccl.ncclInProgress;
import static org.bytedeco.cuda.global.nccl.ncclSuccess;

import dev.weft.c10d.DistributedException;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.cuda.CudaEvent;
import dev.weft.tensor.cuda.CudaStream;
import dev.weft.tensor.cuda.RawPointer;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.nccl.ncclComm;
import org.bytedeco.javacpp.IntPointer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A communicator of NCCL with its stream and the works that are under way on it. Thread-safe: one
 * thread at a time is inside NCCL with it.
 *
 * <p>A first use makes connections and waits for other ranks: inside NCCL, or, where launches do
 * not block, outside. The monitor ends what waits there for too long with an abort. Launches that
 * do not block take turns on a device ({@link DeviceState#launches}); the turn is passed on while
 * one waits for other ranks, since waiting with it in hand could close a circle.
 */
final class NcclCommunicator {
  private static final Logger LOG = LoggerFactory.getLogger(NcclCommunicator.class);
  private static final AtomicLong CREATED = new AtomicLong();
  private static final long SPIN_NANOS = 200_000;
  private static final long KEEP_TURN_NANOS = 2_000_000;

  private final NcclGroup group;
  private final String key;
  private final int device;
  private final int rank;
  private final int size;
  private final ncclComm handle;
  private final CudaStream stream;
  private final long memoryBytes;
  private final DeviceState deviceState;
  private final CudaEvent inputsReady;
  // Held by the one thread that may be inside NCCL with this communicator.
  private final ReentrantLock use = new ReentrantLock();
  private final RawPointer source = new RawPointer();
  private final RawPointer target = new RawPointer();
  private final IntPointer asyncState = new IntPointer(1);
  private final WorksUnderWay works = new WorksUnderWay();
  private final CommunicatorEnd end = new CommunicatorEnd(this, works);
  private @Nullable NcclWork last;
  // Calls that block must not hold the turn; NCCL sees to the order of their launches by itself.
  private final boolean takesTurns;
  // Since when a thread is inside NCCL, 0 for none, and with which operation.
  private volatile long insideSince;
  private volatile String insideWhat = "";
  private volatile @Nullable OperationTimeoutException stuck;
  private volatile @Nullable Throwable failure;
  // The process ends: what is launched now could hold up its end for ever.
  private volatile boolean leaving;

  /** What gives a communicator its operations: calls of NCCL for a stream. */
  interface Body {
    /** Returns NCCL's code; in progress counts as well. */
    int run(NcclCommunicator communicator, CUstream_st stream);
  }

  NcclCommunicator(
      NcclGroup group,
      String key,
      int device,
      int rank,
      int size,
      ncclComm handle,
      long memoryBytes) {
    this.group = group;
    this.key = key;
    this.device = device;
    this.rank = rank;
    this.size = size;
    this.handle = handle;
    this.memoryBytes = memoryBytes;
    this.deviceState = DeviceState.of(device);
    this.takesTurns = !group.options().blockingLaunch();
    this.stream = CudaStream.fromPool(device, group.options().highPriorityStream());
    this.inputsReady = new CudaEvent(device, false);
  }

  /** Counts it and has it looked after, once it is made. */
  NcclCommunicator begin() {
    CREATED.incrementAndGet();
    NcclMonitor.add(this);
    if (!NcclExit.register()) {
      refuse();
    }
    if (LOG.isDebugEnabled()) {
      LOG.debug("made {}", this);
    }
    return this;
  }

  /** How a communicator is: NCCL's code, in progress among them. */
  static int state(ncclComm of, IntPointer state) {
    int code = ncclCommGetAsyncError(of, state);
    return code == ncclSuccess ? state.get() : code;
  }

  static Thread daemon(String name, Runnable body) {
    Thread thread = new Thread(body, name);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  static long created() {
    return CREATED.get();
  }

  // ---- what it is ----

  int device() {
    return device;
  }

  ncclComm handle() {
    return handle;
  }

  CudaStream stream() {
    return stream;
  }

  DeviceState deviceState() {
    return deviceState;
  }

  Nccl.Communicator describe() {
    return new Nccl.Communicator(
        group.groupName(), key, device, rank, size, stream.isHighPriority(), memoryBytes);
  }

  // ---- launching ----

  /**
   * Launches an operation: on the current stream, or on the communicator's own behind what the
   * current stream has been given, or behind an event.
   *
   * @param after what it waits for instead of the current stream; null for that
   */
  void launch(
      NcclWork work,
      boolean async,
      @Nullable CudaEvent after,
      @Nullable Staging staging,
      Body body) {
    boolean given = false;
    use.lock();
    try {
      Throwable f = failure;
      if (f != null) {
        throw group.unusable(work.opName(), f);
      }
      if (leaving) {
        throw new DistributedException(
            work.describe() + " is not launched: the process ends, and others may be gone already");
      }
      Cuda.bind(device);
      CudaStream current = CudaStream.current(device);
      CudaStream on = async ? stream : current;
      takeTurn();
      insideWhat = work.opName();
      insideSince = System.nanoTime() | 1;
      try {
        if (async) {
          on.waitFor(after != null ? after : inputsReady.record(current));
        }
        NcclWork before = last;
        if (before != null && before.stream() != on && !before.hasEnded()) {
          before.followedOn(on);
        }
        given = true;
        settle(work.opName(), body.run(this, on.handle()));
        if (staging != null) {
          staging.finish(on);
        }
        work.launched(this, on, deviceState.takeEvent().record(on));
        last = work;
      } finally {
        insideSince = 0;
        passTurn();
      }
      works.add(work);
      Throwable late = failure;
      if (late != null) {
        work.fail(late);
      }
    } catch (RuntimeException | Error e) {
      work.fail(e);
      if (given) {
        works.add(work); // its memory is let go of with the communicator
      } else {
        work.letGo();
      }
      throw e;
    } finally {
      use.unlock();
    }
  }

  /** Launches several works by one body, which they all end with. */
  void launchAll(
      List<NcclWork> several,
      boolean async,
      @Nullable CudaEvent after,
      @Nullable Staging staging,
      Body body) {
    NcclWork first = several.get(0);
    try {
      launch(first, async, after, staging, body);
    } catch (RuntimeException | Error e) {
      for (NcclWork w : several.subList(1, several.size())) {
        w.fail(e);
        works.add(w);
      }
      throw e;
    }
    use.lock();
    try {
      CudaStream on = first.stream();
      for (NcclWork w : several.subList(1, several.size())) {
        if (on != null) {
          w.launched(this, on, deviceState.takeEvent().record(on));
          works.add(w);
        }
      }
    } finally {
      use.unlock();
    }
  }

  /**
   * Waits until NCCL has launched what a call began; the device's turn is held at first. For bodies
   * of several calls, too.
   */
  void settle(String what, int code) {
    if (code == ncclSuccess) {
      return;
    }
    long begin = System.nanoTime();
    int now = code;
    while (now == ncclInProgress) {
      Throwable f = failure;
      if (f != null) {
        throw group.unusable(what, f);
      }
      long elapsed = System.nanoTime() - begin;
      if (elapsed < SPIN_NANOS) {
        Thread.onSpinWait();
      } else if (elapsed < KEEP_TURN_NANOS) {
        LockSupport.parkNanos(this, 20_000);
      } else if (elapsed > group.timeout().toNanos()) {
        OperationTimeoutException late = lateInside(what);
        group.failed(late);
        throw late;
      } else {
        passTurn();
        try {
          LockSupport.parkNanos(this, 500_000);
        } finally {
          takeTurn();
        }
      }
      now = state(handle, asyncState);
    }
    if (now != ncclSuccess) {
      Throwable f = failure;
      if (f instanceof OperationTimeoutException late && f == stuck) {
        throw late;
      }
      if (f != null) {
        throw group.unusable(what, f);
      }
      RuntimeException failed = group.blame(what, NcclLibrary.failure(what, now, handle));
      group.failed(failed);
      throw failed;
    }
  }

  private OperationTimeoutException lateInside(String what) {
    return new OperationTimeoutException(
        what
            + " in group "
            + group.describeGroup()
            + " on rank "
            + group.globalRank(group.rank())
            + " timed out after "
            + group.timeout().toMillis()
            + " ms while it connected to the other ranks");
  }

  private void takeTurn() {
    if (takesTurns) {
      deviceState.launches.lock();
    }
  }

  private void passTurn() {
    if (takesTurns) {
      deviceState.launches.unlock();
    }
  }

  /** Held by who calls NCCL with the handle. */
  ReentrantLock use() {
    return use;
  }

  /** A pointer to an address, for a call of the thread that holds {@link #use}. */
  RawPointer source(long address) {
    return source.at(address);
  }

  /** Another one. */
  RawPointer target(long address) {
    return target.at(address);
  }

  // ---- looking after it ----

  /** Ends works that are done, asks for errors; true while something is under way. */
  boolean look() {
    NcclWork first = works.look();
    long now = System.nanoTime();
    if (first != null && first.isOverdue(now)) {
      group.overdue(first);
    }
    long since = insideSince;
    if (since != 0 && stuck == null && now - since > group.timeout().toNanos()) {
      // A thread is inside NCCL, where only an abort reaches it.
      OperationTimeoutException late = lateInside(insideWhat);
      stuck = late;
      group.failed(late);
    }
    if (failure == null && use.tryLock()) {
      try {
        if (!end.isOver() && failure == null) {
          askForError();
        }
      } finally {
        use.unlock();
      }
    }
    return insideSince != 0 || !works.isEmpty();
  }

  private void askForError() {
    int state = state(handle, asyncState);
    if (state != ncclSuccess && state != ncclInProgress) {
      group.asyncError(
          NcclLibrary.failure(
              "a collective of group "
                  + group.describeGroup()
                  + " on rank "
                  + group.globalRank(group.rank()),
              state,
              handle));
    }
  }

  /** The monitor cannot look after it. */
  void broken(RuntimeException cause) {
    NcclMonitor.remove(this);
    works.failAll(cause);
  }

  // ---- failures and the end ----

  /** Why nothing can be launched any more; null while it can. */
  @Nullable Throwable failure() {
    return failure;
  }

  String describeGroup() {
    return group.describeGroup();
  }

  /** How it is let go of. */
  CommunicatorEnd end() {
    return end;
  }

  /** Nothing is launched from now on, as the process ends. */
  void refuse() {
    leaving = true;
  }

  /** Nothing is launched from now on, for a reason; the first one counts. */
  void refuse(Throwable cause) {
    if (failure == null) {
      failure = cause;
    }
  }

  /** Works under way fail now; the device lets go of them without a call of NCCL. */
  void markFailed(Throwable cause) {
    refuse(cause);
    works.failAll(cause);
  }

  /**
   * Ends what is under way, and everything to come, with this failure. Returns at once; a thread of
   * its own makes NCCL let go, once no other one is inside it.
   */
  void abort(Throwable cause) {
    markFailed(cause);
    end.abort();
  }

  /** For the end, by the thread that holds {@link #use}. */
  void closeEvent() {
    inputsReady.close();
  }

  @Override
  public String toString() {
    return "NCCL communicator "
        + key
        + " of group "
        + group.groupName()
        + " (rank "
        + rank
        + " of "
        + size
        + ", cuda:"
        + device
        + ", "
        + (memoryBytes >> 20)
        + " MiB)";
  }
}
