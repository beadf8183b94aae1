package dev.weft.c10d.nccl;

import static org.bytedeco.cuda.global.nccl.ncclCommAbort;
import static org.bytedeco.cuda.global.nccl.ncclCommDestroy;
import static org.bytedeco.cuda.global.nccl.ncclCommFinalize;
import static org.bytedeco.cuda.global.nccl.ncclCommGetAsyncError;
import static org.bytedeco.cuda.global.nccl.ncclInProgress;
import static org.bytedeco.cuda.global.nccl.ncclSuccess;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.cuda.CudaEvent;
import dev.weft.tensor.cuda.CudaStream;
import dev.weft.tensor.cuda.RawPointer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.TimeUnit;
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
  private static final int REAP = 64;
  private static final long SPIN_NANOS = 200_000;
  private static final long KEEP_TURN_NANOS = 2_000_000;
  static final long ABORT_LIMIT_MILLIS = 5_000;

  private final NcclBackend backend;
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
  private final ArrayDeque<NcclWork> underWay = new ArrayDeque<>();
  // Failed, and perhaps on the device still; guarded by underWay, too.
  private final List<NcclWork> failed = new ArrayList<>();
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
  private boolean ended;
  private @Nullable Thread ending;

  /** What gives a communicator its operations: calls of NCCL for a stream. */
  interface Body {
    /** Returns NCCL's code; in progress counts as well. */
    int run(NcclCommunicator communicator, CUstream_st stream);
  }

  NcclCommunicator(
      NcclBackend backend,
      String key,
      int device,
      int rank,
      int size,
      ncclComm handle,
      long memoryBytes) {
    this.backend = backend;
    this.key = key;
    this.device = device;
    this.rank = rank;
    this.size = size;
    this.handle = handle;
    this.memoryBytes = memoryBytes;
    this.deviceState = DeviceState.of(device);
    this.takesTurns = !backend.options().blockingLaunch();
    this.stream = CudaStream.fromPool(device, backend.options().highPriorityStream());
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
        backend.groupName(), key, device, rank, size, stream.isHighPriority(), memoryBytes);
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
    use.lock();
    try {
      Throwable f = failure;
      if (f != null) {
        throw backend.unusable(work.opName(), f);
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
      add(work);
      Throwable late = failure;
      if (late != null) {
        work.fail(late);
      }
    } catch (RuntimeException | Error e) {
      work.fail(e);
      add(work); // its memory is let go of with the communicator
      throw e;
    } finally {
      use.unlock();
    }
  }

  /** Marks several works as launched by one body, which they all end with. */
  void launchAll(
      List<NcclWork> works,
      boolean async,
      @Nullable CudaEvent after,
      @Nullable Staging staging,
      Body body) {
    NcclWork first = works.get(0);
    try {
      launch(first, async, after, staging, body);
    } catch (RuntimeException | Error e) {
      for (NcclWork w : works.subList(1, works.size())) {
        w.fail(e);
        add(w);
      }
      throw e;
    }
    use.lock();
    try {
      CudaStream on = first.stream();
      for (NcclWork w : works.subList(1, works.size())) {
        if (on != null) {
          w.launched(this, on, deviceState.takeEvent().record(on));
          add(w);
        }
      }
    } finally {
      use.unlock();
    }
  }

  private void add(NcclWork work) {
    boolean many;
    synchronized (underWay) {
      underWay.addLast(work);
      many = underWay.size() % REAP == 0;
    }
    if (many) {
      reapSome();
    }
  }

  /**
   * Ends works from the front in one look: those of one stream end in order, so the last of some
   * tells for all of them.
   */
  private void reapSome() {
    List<NcclWork> front = new ArrayList<>(REAP);
    synchronized (underWay) {
      Iterator<NcclWork> each = underWay.iterator();
      @Nullable CudaStream of = null;
      while (front.size() < REAP && each.hasNext()) {
        NcclWork w = each.next();
        CudaStream s = w.stream();
        if (of == null) {
          of = s;
        }
        if (s != of) {
          break;
        }
        front.add(w);
      }
    }
    if (!front.isEmpty() && front.get(front.size() - 1).poll()) {
      for (NcclWork w : front) {
        w.finish();
      }
      dropEnded();
    }
  }

  private void dropEnded() {
    synchronized (underWay) {
      NcclWork w;
      while ((w = underWay.peekFirst()) != null && w.hasEnded()) {
        NcclWork unused = underWay.removeFirst();
        if (w.exception() != null) {
          failed.add(w);
        }
      }
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
        throw backend.unusable(what, f);
      }
      long elapsed = System.nanoTime() - begin;
      if (elapsed < SPIN_NANOS) {
        Thread.onSpinWait();
      } else if (elapsed < KEEP_TURN_NANOS) {
        LockSupport.parkNanos(this, 20_000);
      } else if (elapsed > backend.timeout().toNanos()) {
        OperationTimeoutException late = lateInside(what);
        backend.failed(late);
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
        throw backend.unusable(what, f);
      }
      RuntimeException failed = backend.blame(what, NcclLibrary.failure(what, now, handle));
      backend.failed(failed);
      throw failed;
    }
  }

  private OperationTimeoutException lateInside(String what) {
    return new OperationTimeoutException(
        what
            + " in group "
            + backend.describeGroup()
            + " on rank "
            + backend.globalRank(backend.rank())
            + " timed out after "
            + backend.timeout().toMillis()
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
    List<NcclWork> all;
    synchronized (underWay) {
      all = new ArrayList<>(underWay);
    }
    long now = System.nanoTime();
    for (NcclWork w : all) {
      if (!w.poll()) {
        if (w.isOverdue(now)) {
          backend.overdue(w);
        }
        break;
      }
    }
    dropEnded();
    long since = insideSince;
    if (since != 0 && stuck == null && now - since > backend.timeout().toNanos()) {
      // A thread is inside NCCL, where only an abort reaches it.
      OperationTimeoutException late = lateInside(insideWhat);
      stuck = late;
      backend.failed(late);
    }
    if (failure == null && use.tryLock()) {
      try {
        if (!ended && failure == null) {
          askForError();
        }
      } finally {
        use.unlock();
      }
    }
    synchronized (underWay) {
      failed.removeIf(NcclWork::letGoWhenDone);
      return insideSince != 0 || !underWay.isEmpty();
    }
  }

  private void askForError() {
    int state = state(handle, asyncState);
    if (state != ncclSuccess && state != ncclInProgress) {
      backend.asyncError(
          NcclLibrary.failure(
              "a collective of group "
                  + backend.describeGroup()
                  + " on rank "
                  + backend.globalRank(backend.rank()),
              state,
              handle));
    }
  }

  /** The monitor cannot look after it. */
  void broken(RuntimeException cause) {
    NcclMonitor.remove(this);
    failAll(cause);
  }

  // ---- the end ----

  private void failAll(Throwable cause) {
    List<NcclWork> all;
    synchronized (underWay) {
      all = new ArrayList<>(underWay);
    }
    for (NcclWork w : all) {
      if (!w.hasEnded()) {
        w.fail(cause);
      }
    }
  }

  /** Works under way fail now; the device lets go of them without a call of NCCL. */
  void markFailed(Throwable cause) {
    if (failure == null) {
      failure = cause;
    }
    failAll(cause);
  }

  /**
   * Ends what is under way, and everything to come, with this failure. Returns at once; a thread of
   * its own makes NCCL let go, once no other one is inside it.
   */
  void abort(Throwable cause) {
    markFailed(cause);
    synchronized (this) {
      if (ended || ending != null) {
        return;
      }
      ending = daemon("weft-nccl-abort", this::abortNow);
    }
  }

  /** Nothing is launched from now on, as the process ends. */
  void refuse() {
    leaving = true;
  }

  /**
   * After {@link #refuse}: aborts what is still under way at a deadline, and at once what waits for
   * a rank that is known to have failed. Only the monitor asks CUDA meanwhile: where a launch waits
   * for room behind a kernel that never ends, every call of CUDA waits with it.
   *
   * @return the thread that makes NCCL let go; null where nothing was under way
   */
  @Nullable Thread abortUnlessIdle(Deadline deadline, Throwable cause) {
    boolean allKnown = false;
    while (!allKnown || isBusy()) {
      if (failure != null || deadline.hasPassed()) {
        abort(cause);
        synchronized (this) {
          return ending;
        }
      }
      NcclMonitor.hurry();
      // A launch that began before has been added once its thread is out.
      if (!allKnown && use.tryLock()) {
        use.unlock();
        allKnown = true;
      } else {
        LockSupport.parkNanos(this, 1_000_000);
      }
    }
    return null;
  }

  /** As far as the monitor has seen. */
  private boolean isBusy() {
    synchronized (underWay) {
      return failure != null
          || failed.stream().anyMatch(NcclWork::wasLaunched)
          || underWay.stream().anyMatch(w -> !w.hasEnded());
    }
  }

  private void abortNow() {
    boolean mine = awaitUse(0);
    try {
      Cuda.bind(device);
      int code = ncclCommAbort(handle);
      if (code != ncclSuccess && code != ncclInProgress) {
        LOG.warn("ncclCommAbort of {} returned {}", this, code);
      }
      gone();
    } finally {
      if (mine) {
        use.unlock();
      }
    }
  }

  /**
   * Takes {@link #use} for the end: waits so long, and a little longer, while nothing fails.
   *
   * @return false where another thread is stuck inside NCCL, and only an abort gets it out
   */
  private boolean awaitUse(long nanos) {
    long begin = System.nanoTime();
    try {
      while (failure == null && System.nanoTime() - begin < nanos) {
        if (use.tryLock(100, TimeUnit.MILLISECONDS)) {
          return true;
        }
      }
      return use.tryLock(2, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** NCCL and the device are done with it. */
  private void gone() {
    synchronized (this) {
      ended = true;
    }
    NcclMonitor.remove(this);
    List<NcclWork> all;
    synchronized (underWay) {
      all = new ArrayList<>(underWay);
      all.addAll(failed);
      underWay.clear();
      failed.clear();
    }
    for (NcclWork w : all) {
      if (w.hasEnded()) {
        w.letGo();
      }
    }
  }

  /**
   * Lets it go, in at most so much time: waits for what is under way, then destroys it; aborts what
   * does not end. May be repeated.
   */
  void close(Duration timeout) {
    Deadline deadline = Deadline.after(timeout);
    Thread thread = beginClose(deadline);
    if (thread == null) {
      return;
    }
    try {
      thread.join(deadline.remainingMillis() + ABORT_LIMIT_MILLIS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (thread.isAlive()) {
      LOG.warn("{} could not be destroyed in time; it is left as it is", this);
    }
  }

  /** Begins to let it go, on a thread of its own; null where that has been done. */
  @Nullable Thread beginClose(Deadline deadline) {
    synchronized (this) {
      if (ended) {
        return null;
      }
      if (ending == null) {
        ending = daemon("weft-nccl-close", () -> closeNow(deadline));
      }
      return ending;
    }
  }

  private void closeNow(Deadline deadline) {
    Cuda.bind(device);
    boolean idle = failure == null && awaitIdle(deadline);
    boolean mine = awaitUse(deadline.remainingNanos());
    try {
      DistributedException closed =
          new DistributedException("group " + backend.describeGroup() + " has been destroyed");
      if (failure == null) {
        failure = closed;
      }
      if (mine && idle && finalized(deadline)) {
        int code = ncclCommDestroy(handle);
        if (code != ncclSuccess && code != ncclInProgress) {
          LOG.warn("ncclCommDestroy of {} returned {}", this, code);
        }
      } else {
        failAll(closed);
        int code = ncclCommAbort(handle);
        if (code != ncclSuccess && code != ncclInProgress) {
          LOG.warn("ncclCommAbort of {} returned {}", this, code);
        }
      }
      gone();
      if (mine) {
        inputsReady.close();
      }
    } finally {
      if (mine) {
        use.unlock();
      }
    }
  }

  private boolean awaitIdle(Deadline deadline) {
    while (true) {
      List<NcclWork> all;
      synchronized (underWay) {
        all = new ArrayList<>(underWay);
      }
      boolean busy = false;
      for (NcclWork w : all) {
        busy |= !w.poll();
      }
      dropEnded();
      if (!busy) {
        return true;
      }
      if (deadline.hasPassed() || failure != null) {
        return false;
      }
      LockSupport.parkNanos(this, 200_000);
    }
  }

  private boolean finalized(Deadline deadline) {
    int code = ncclCommFinalize(handle);
    while (code == ncclInProgress && !deadline.hasPassed()) {
      LockSupport.parkNanos(this, 100_000);
      code = state(handle, asyncState);
    }
    return code == ncclSuccess;
  }

  @Override
  public String toString() {
    return "NCCL communicator "
        + key
        + " of group "
        + backend.groupName()
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
