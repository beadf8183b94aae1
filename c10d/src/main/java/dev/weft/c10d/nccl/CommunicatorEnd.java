package dev.weft.c10d.nccl;

import static org.bytedeco.cuda.global.nccl.ncclCommAbort;
import static org.bytedeco.cuda.global.nccl.ncclCommDestroy;
import static org.bytedeco.cuda.global.nccl.ncclCommFinalize;
import static org.bytedeco.cuda.global.nccl.ncclInProgress;
import static org.bytedeco.cuda.global.nccl.ncclSuccess;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.DistributedException;
import dev.weft.tensor.cuda.Cuda;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.bytedeco.javacpp.IntPointer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How one communicator comes to its end: destroyed when it is idle, aborted when it is not. NCCL is
 * called on a thread of its own, so that nobody waits without a limit. Thread-safe.
 */
final class CommunicatorEnd {
  private static final Logger LOG = LoggerFactory.getLogger(CommunicatorEnd.class);
  private static final long ABORT_LIMIT_MILLIS = 5_000;

  private final NcclCommunicator communicator;
  private final WorksUnderWay works;
  private boolean over;
  private @Nullable Thread ending;

  CommunicatorEnd(NcclCommunicator communicator, WorksUnderWay works) {
    this.communicator = communicator;
    this.works = works;
  }

  /** NCCL and the device are done with it. */
  synchronized boolean isOver() {
    return over;
  }

  /** Has NCCL let go, after a failure; returns at once. May be repeated. */
  synchronized void abort() {
    if (!over && ending == null) {
      ending = NcclCommunicator.daemon("weft-nccl-abort", this::abortNow);
    }
  }

  private void abortNow() {
    boolean mine = awaitUse(0);
    try {
      Cuda.bind(communicator.device());
      abortHandle();
      Throwable cause = communicator.failure();
      if (cause != null) {
        works.failAll(cause);
      }
      finish();
    } finally {
      if (mine) {
        communicator.use().unlock();
      }
    }
  }

  private void abortHandle() {
    warnOf("ncclCommAbort", ncclCommAbort(communicator.handle()));
  }

  private void warnOf(String call, int code) {
    if (code != ncclSuccess && code != ncclInProgress) {
      LOG.warn("{} of {} returned {}", call, communicator, code);
    }
  }

  /**
   * The process ends: aborts what is still under way at a deadline, and at once what waits for a
   * rank that is known to have failed. Only the monitor asks CUDA meanwhile: where a launch waits
   * for room behind a kernel that never ends, every call of CUDA waits with it.
   *
   * @return the thread that makes NCCL let go; null where nothing was under way
   */
  @Nullable Thread abortUnlessIdle(Deadline deadline, Throwable cause) {
    boolean allKnown = false;
    while (!allKnown || communicator.failure() != null || works.mayBeOnDevice()) {
      if (communicator.failure() != null || deadline.hasPassed()) {
        communicator.refuse(cause); // its works fail after the abort: they may be locked before
        abort();
        synchronized (this) {
          return ending;
        }
      }
      NcclMonitor.hurry();
      // A launch that began before has been added once its thread is out.
      if (!allKnown && communicator.use().tryLock()) {
        communicator.use().unlock();
        allKnown = true;
      } else {
        LockSupport.parkNanos(this, 1_000_000);
      }
    }
    return null;
  }

  /** Until when the threads of {@link #abortUnlessIdle} are waited for, from now. */
  static Deadline abortLimit() {
    return Deadline.after(Duration.ofMillis(ABORT_LIMIT_MILLIS));
  }

  /**
   * Takes the right to be inside NCCL: waits so long, and a little longer, while nothing fails.
   *
   * @return false where another thread is stuck inside NCCL, and only an abort gets it out
   */
  private boolean awaitUse(long nanos) {
    long begin = System.nanoTime();
    try {
      while (communicator.failure() == null && System.nanoTime() - begin < nanos) {
        if (communicator.use().tryLock(100, TimeUnit.MILLISECONDS)) {
          return true;
        }
      }
      return communicator.use().tryLock(2, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private void finish() {
    synchronized (this) {
      over = true;
    }
    NcclMonitor.remove(communicator);
    works.letGo();
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
      LOG.warn("{} could not be destroyed in time; it is left as it is", communicator);
    }
  }

  /** Begins to let it go, on a thread of its own; null where that has been done. */
  synchronized @Nullable Thread beginClose(Deadline deadline) {
    if (over) {
      return null;
    }
    if (ending == null) {
      ending = NcclCommunicator.daemon("weft-nccl-close", () -> closeNow(deadline));
    }
    return ending;
  }

  private void closeNow(Deadline deadline) {
    Cuda.bind(communicator.device());
    boolean idle = communicator.failure() == null && awaitIdle(deadline);
    boolean mine = awaitUse(deadline.remainingNanos());
    try {
      DistributedException closed =
          new DistributedException("group " + communicator.describeGroup() + " has been destroyed");
      communicator.refuse(closed);
      if (mine && idle && finalized(deadline)) {
        warnOf("ncclCommDestroy", ncclCommDestroy(communicator.handle()));
      } else {
        works.failAll(closed);
        abortHandle();
      }
      finish();
      if (mine) {
        communicator.closeEvent();
      }
    } finally {
      if (mine) {
        communicator.use().unlock();
      }
    }
  }

  private boolean awaitIdle(Deadline deadline) {
    while (!works.areDone()) {
      if (deadline.hasPassed() || communicator.failure() != null) {
        return false;
      }
      LockSupport.parkNanos(this, 200_000);
    }
    return true;
  }

  private boolean finalized(Deadline deadline) {
    int code = ncclCommFinalize(communicator.handle());
    try (IntPointer state = new IntPointer(1)) {
      while (code == ncclInProgress && !deadline.hasPassed()) {
        LockSupport.parkNanos(this, 100_000);
        code = NcclCommunicator.state(communicator.handle(), state);
      }
    }
    return code == ncclSuccess;
  }
}
