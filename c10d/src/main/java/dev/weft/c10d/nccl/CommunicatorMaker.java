package dev.weft.c10d.nccl;

import static org.bytedeco.cuda.global.nccl.ncclCommAbort;
import static org.bytedeco.cuda.global.nccl.ncclInProgress;
import static org.bytedeco.cuda.global.nccl.ncclSuccess;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.tensor.cuda.Cuda;
import java.util.concurrent.locks.LockSupport;
import org.bytedeco.cuda.nccl.ncclComm;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.jspecify.annotations.Nullable;

/**
 * Makes one communicator, within a time. The call of NCCL is made on a thread of its own, as it may
 * block until all ranks have come; they are known to be on their way by then ({@link Arrivals}).
 */
final class CommunicatorMaker {
  private static final long LOOK_NANOS = 100_000;

  private final NcclGroup group;
  private final String key;
  private final int device;
  private final int rank;
  private final int size;
  private final String call;
  private final Deadline deadline;
  private final @Nullable ncclComm parent;

  /**
   * A call that begins to make a communicator. NCCL may write the cell after the call has returned,
   * so it is memory that stays.
   */
  interface Call {
    int make(PointerPointer<ncclComm> cell);
  }

  /**
   * What to make.
   *
   * @param call the call that makes it, for messages
   * @param parent the communicator it is made from, whose state tells how far it is; null for none
   */
  CommunicatorMaker(
      NcclGroup group,
      String key,
      int device,
      int rank,
      int size,
      String call,
      Deadline deadline,
      @Nullable ncclComm parent) {
    this.group = group;
    this.key = key;
    this.device = device;
    this.rank = rank;
    this.size = size;
    this.call = call;
    this.deadline = deadline;
    this.parent = parent;
  }

  /** The call on its thread. */
  private final class Attempt {
    private final PointerPointer<ncclComm> cell = new PointerPointer<>(1);
    private final Thread caller = Thread.currentThread();
    private int code = ncclInProgress;
    private @Nullable Throwable thrown;
    private boolean returned;
    private boolean abandoned;

    Attempt() {
      cell.put(0, (Pointer) null);
    }

    void start(Call begin) {
      Thread unused =
          NcclCommunicator.daemon(
              "weft-nccl-init",
              () -> {
                int result = ncclInProgress;
                Throwable failed = null;
                try {
                  Cuda.bind(device);
                  result = begin.make(cell);
                } catch (RuntimeException | Error e) {
                  failed = e;
                }
                boolean late;
                synchronized (this) {
                  code = result;
                  thrown = failed;
                  returned = true;
                  late = abandoned;
                }
                if (late) {
                  abortNow();
                } else {
                  LockSupport.unpark(caller);
                }
              });
    }

    synchronized boolean hasReturned() {
      if (thrown != null) {
        throw new IllegalStateException(call + " failed", thrown);
      }
      return returned;
    }

    synchronized int code() {
      return code;
    }

    @Nullable ncclComm child() {
      ncclComm comm = cell.get(ncclComm.class);
      return comm == null || comm.isNull() ? null : comm;
    }

    /** Nobody wants it any more: it is aborted, when the call has returned. */
    void abandon() {
      boolean now;
      synchronized (this) {
        abandoned = true;
        now = returned;
      }
      if (now) {
        Thread unused = NcclCommunicator.daemon("weft-nccl-abandon", this::abortNow);
      }
    }

    private void abortNow() {
      ncclComm comm = child();
      if (comm != null) {
        Cuda.bind(device);
        int ignored = ncclCommAbort(comm);
      }
    }
  }

  /**
   * Makes it and waits until it is ready.
   *
   * @return null where this rank is in no part of the parent
   * @throws OperationTimeoutException if it is not ready in time
   * @throws NcclException if NCCL says so
   */
  @Nullable NcclCommunicator make(Call begin) {
    Cuda.bind(device);
    long free = Cuda.memoryInfo(device)[0];
    Attempt attempt = new Attempt();
    attempt.start(begin);
    try (IntPointer state = new IntPointer(1)) {
      int code = ncclInProgress;
      while (true) {
        if (attempt.hasReturned()) {
          code = progress(attempt, state);
          if (code != ncclInProgress) {
            break;
          }
        }
        Throwable stopped = group.failure();
        if (stopped != null || deadline.hasPassed()) {
          attempt.abandon();
          throw stopped != null ? group.unusable(call, stopped) : late();
        }
        if (Thread.currentThread().isInterrupted()) {
          attempt.abandon();
          throw new DistributedException(
              call + " for group " + group.describeGroup() + " was interrupted");
        }
        LockSupport.parkNanos(this, LOOK_NANOS);
      }
      ncclComm child = attempt.child();
      if (code != ncclSuccess) {
        NcclException failed = NcclLibrary.failure(call, code, child == null ? parent : child);
        attempt.abandon();
        throw group.blame(call, failed);
      }
      if (child == null) {
        attempt.cell.close();
        return null;
      }
      long used = Math.max(0, free - Cuda.memoryInfo(device)[0]);
      return new NcclCommunicator(group, key, device, rank, size, child, used).begin();
    }
  }

  /** Where it is after the call: a parent is ready first, then the child's handle is there. */
  private int progress(Attempt attempt, IntPointer state) {
    int code = attempt.code();
    if (code != ncclSuccess && code != ncclInProgress) {
      return code;
    }
    ncclComm child = attempt.child();
    if (parent != null) {
      int of = NcclCommunicator.state(parent, state);
      if (of != ncclSuccess) {
        return of;
      }
    }
    if (child == null) {
      return size > 0 ? ncclInProgress : ncclSuccess;
    }
    return NcclCommunicator.state(child, state);
  }

  private OperationTimeoutException late() {
    return new OperationTimeoutException(
        call
            + " for "
            + (key.contains(":") ? "the pair " + key + " of " : "")
            + "group "
            + group.describeGroup()
            + " on rank "
            + group.globalRank(group.rank())
            + " timed out after "
            + deadline.timeout().toMillis()
            + " ms: its "
            + size
            + " ranks came, and did not connect");
  }
}
