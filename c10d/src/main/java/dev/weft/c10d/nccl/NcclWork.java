package dev.weft.c10d.nccl;

import dev.weft.c10d.DistributedException;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.c10d.Work;
import dev.weft.tensor.Storage;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.cuda.CudaEvent;
import dev.weft.tensor.cuda.CudaStorage;
import dev.weft.tensor.cuda.CudaStream;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * An operation that was given to NCCL: an event behind it on its stream says when the device is
 * done. Thread-safe.
 *
 * <p>Awaiting makes the current stream wait and returns; the host waits only in blocking mode, for
 * a barrier, and where a time is given. An asynchronous operation holds its tensors' memory until
 * the device is done, or until the stream that the memory belongs to waits for it: what that stream
 * is given later comes after. A synchronous one ran on the caller's own stream and holds nothing.
 */
final class NcclWork implements Work {
  private static final Storage[] NONE = {};
  private static final long SPIN_NANOS = 50_000;

  private enum State {
    POSTED,
    LAUNCHED,
    DONE,
    FAILED
  }

  private final NcclGroup group;
  private final String opName;
  private final long sequence;
  private final List<? extends StridedTensor> outputs;
  private final int peer;
  private final boolean onHost;
  private final long timeoutNanos;
  private final long started = System.nanoTime();
  private volatile State state = State.POSTED;
  private volatile @Nullable Throwable failure;
  // Changed under the lock: the reaper may give the event back to the pool, once it is done. It is
  // asked without the lock: such a call can wait for as long as a kernel runs.
  private volatile @Nullable CudaEvent end;
  private @Nullable CudaStream stream;
  private @Nullable NcclCommunicator communicator;
  private Storage[] held = NONE;
  private @Nullable Consumer<@Nullable Throwable> listener;
  private @Nullable CompletableFuture<Void> completion;

  /**
   * Makes an operation that is not launched yet.
   *
   * @param peer the other side's group rank of a message, or -1
   * @param onHost whether awaiting it waits on the host
   */
  NcclWork(
      NcclGroup group,
      String opName,
      long sequence,
      List<? extends StridedTensor> outputs,
      int peer,
      boolean onHost,
      Duration timeout) {
    this.group = group;
    this.opName = opName;
    this.sequence = sequence;
    this.outputs = outputs;
    this.peer = peer;
    this.onHost = onHost;
    this.timeoutNanos = timeout.toNanos();
  }

  // ---- how it goes on; called by the communicator and the monitor ----

  /** Retains memory until the device is done. */
  void hold(Storage... storages) {
    for (Storage s : storages) {
      Storage unused = s.retain();
    }
    synchronized (this) {
      held = storages;
    }
  }

  /** It has been launched on a stream, with an event behind it. */
  synchronized void launched(NcclCommunicator on, CudaStream where, CudaEvent behind) {
    communicator = on;
    stream = where;
    end = behind;
    if (state == State.POSTED) {
      state = State.LAUNCHED;
    }
    notifyAll();
  }

  /** Looks whether the device is done with it; ends it then. */
  boolean poll() {
    State s = state;
    if (s == State.DONE || s == State.FAILED) {
      return true;
    }
    if (s == State.POSTED) {
      return false;
    }
    CudaEvent e = end;
    if (e != null && !e.isDone()) {
      return hasEnded(); // then the event may be another's by now
    }
    finish();
    return true;
  }

  /** The device is done. */
  void finish() {
    @Nullable Consumer<@Nullable Throwable> told;
    @Nullable CompletableFuture<Void> future;
    synchronized (this) {
      if (state != State.LAUNCHED) {
        return;
      }
      state = State.DONE;
      giveEventBack();
      releaseHeld();
      told = listener;
      listener = null;
      future = completion;
      notifyAll();
    }
    if (told != null) {
      told.accept(null);
    }
    if (future != null) {
      boolean unused = future.complete(null);
    }
  }

  /** It cannot end well. Its memory stays held: the device may still use it. */
  void fail(Throwable cause) {
    @Nullable Consumer<@Nullable Throwable> told;
    @Nullable CompletableFuture<Void> future;
    synchronized (this) {
      if (state == State.DONE || state == State.FAILED) {
        return;
      }
      failure = cause;
      state = State.FAILED;
      told = listener;
      listener = null;
      future = completion;
      notifyAll();
    }
    if (told != null) {
      told.accept(cause);
    }
    if (future != null) {
      boolean unused = future.completeExceptionally(cause);
    }
  }

  /** The device has been given it, and has not been seen to be done with it. */
  boolean wasLaunched() {
    return end != null;
  }

  /** After a failure: lets go of the memory if the device is done all the same. */
  boolean letGoWhenDone() {
    CudaEvent e = end;
    if (e == null || !e.isDone()) {
      return false;
    }
    synchronized (this) {
      if (end == e) {
        letGo();
      }
    }
    return true;
  }

  /** After a failure: the device uses the memory no longer. */
  synchronized void letGo() {
    giveEventBack();
    releaseHeld();
  }

  private void giveEventBack() {
    CudaEvent e = end;
    NcclCommunicator c = communicator;
    if (e != null && c != null) {
      end = null;
      c.deviceState().giveBack(e);
    }
  }

  private void releaseHeld() {
    Storage[] h = held;
    held = NONE;
    for (Storage s : h) {
      s.release();
    }
  }

  synchronized @Nullable CudaStream stream() {
    return stream;
  }

  /** Makes a stream wait for it, where it is still under way. */
  synchronized void followedOn(CudaStream next) {
    CudaEvent e = end;
    if (state == State.LAUNCHED && e != null) {
      next.waitFor(e);
    }
  }

  boolean hasEnded() {
    State s = state;
    return s == State.DONE || s == State.FAILED;
  }

  boolean isOverdue(long now) {
    return now - started > timeoutNanos && !hasEnded();
  }

  /** What is said of it when its time is over. */
  OperationTimeoutException timedOut() {
    return new OperationTimeoutException(
        describe()
            + " timed out after "
            + timeoutNanos / 1_000_000
            + " ms: "
            + (peer >= 0
                ? "rank " + group.globalRank(peer) + " did not take part"
                : "not all ranks took part, or the device is still busy with earlier work"));
  }

  String describe() {
    String with =
        peer < 0
            ? ""
            : (opName.equals("send") ? " to rank " : " from rank ") + group.globalRank(peer);
    return opName
        + with
        + " (seq "
        + sequence
        + ") on rank "
        + group.globalRank(group.rank())
        + " in group "
        + group.describeGroup();
  }

  // ---- waiting ----

  @Override
  public void await() {
    if (onHost || group.options().blockingWait()) {
      awaitOnHost();
    } else {
      awaitOnStream();
    }
  }

  /** Makes this thread's current stream wait. */
  void awaitOnStream() {
    if (state == State.POSTED) {
      awaitLaunch(started + timeoutNanos, true);
    }
    throwFailure();
    synchronized (this) {
      CudaEvent e = end;
      CudaStream on = stream;
      if (state != State.LAUNCHED || e == null || on == null) {
        return;
      }
      CudaStream current = CudaStream.current(on.device());
      if (current != on) {
        current.waitFor(e);
      }
      if (belongsTo(current)) {
        releaseHeld();
      }
    }
  }

  private boolean belongsTo(CudaStream current) {
    for (Storage s : held) {
      if (!(s instanceof CudaStorage c) || c.stream() != current) {
        return false;
      }
    }
    return true;
  }

  /** Waits until the device is done, at most the operation's own time. */
  void awaitOnHost() {
    if (!doneBy(started + timeoutNanos)) {
      OperationTimeoutException late = timedOut();
      group.failed(late);
      fail(late);
    }
    throwFailure();
  }

  @Override
  public void await(Duration timeout) {
    if (!doneBy(System.nanoTime() + Math.max(0, timeout.toNanos()))) {
      throw new OperationTimeoutException(
          describe() + " is not done after " + timeout.toMillis() + " ms");
    }
    throwFailure();
  }

  private boolean doneBy(long deadline) {
    if (state == State.POSTED && !awaitLaunch(deadline, false)) {
      return false;
    }
    long begin = System.nanoTime();
    while (!poll()) {
      long now = System.nanoTime();
      if (now - deadline >= 0) {
        return poll();
      }
      if (now - begin < SPIN_NANOS) {
        Thread.onSpinWait();
      } else {
        LockSupport.parkNanos(this, Math.min(100_000, (now - begin) / 8));
      }
      if (Thread.currentThread().isInterrupted()) {
        throw new DistributedException("interrupted while waiting for " + describe());
      }
    }
    return true;
  }

  /** Waits until another thread has launched it; a call that is too late ends it where told so. */
  private boolean awaitLaunch(long deadline, boolean endWhenLate) {
    if (group.isCoalescingHere()) {
      throw new IllegalStateException(
          describe() + " is awaited before its batch has been launched; end the batch first");
    }
    synchronized (this) {
      while (state == State.POSTED) {
        long left = deadline - System.nanoTime();
        if (left <= 0) {
          break;
        }
        try {
          wait(left / 1_000_000, (int) (left % 1_000_000));
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          throw new DistributedException("interrupted while waiting for " + describe(), e);
        }
      }
    }
    if (state != State.POSTED) {
      return true;
    }
    if (endWhenLate) {
      OperationTimeoutException late = timedOut();
      group.failed(late);
      fail(late);
    }
    return false;
  }

  private void throwFailure() {
    Throwable f = failure;
    if (f instanceof RuntimeException r) {
      throw r;
    }
    if (f instanceof Error e) {
      throw e;
    }
    if (f != null) {
      throw new DistributedException(String.valueOf(f), f);
    }
  }

  // ---- asking ----

  @Override
  public boolean isCompleted() {
    return poll();
  }

  @Override
  public boolean isLaunched() {
    return state != State.POSTED;
  }

  @Override
  public boolean isSuccess() {
    return poll() && failure == null;
  }

  @Override
  public @Nullable Throwable exception() {
    return failure;
  }

  @Override
  public CompletableFuture<List<Tensor>> future() {
    return StreamFuture.of(this, List.copyOf(outputs));
  }

  @Override
  public CompletableFuture<Void> completion() {
    CompletableFuture<Void> future;
    synchronized (this) {
      if (completion == null) {
        completion = new CompletableFuture<>();
      }
      future = completion;
    }
    Throwable f = failure;
    if (f != null) {
      boolean unused = future.completeExceptionally(f);
    } else if (poll()) {
      boolean unused = future.complete(null);
    } else {
      NcclMonitor.hurry();
    }
    return future.copy();
  }

  @Override
  public void whenEnded(Consumer<@Nullable Throwable> code) {
    synchronized (this) {
      if (!hasEnded()) {
        Consumer<@Nullable Throwable> before = listener;
        listener =
            before == null
                ? code
                : f -> {
                  before.accept(f);
                  code.accept(f);
                };
        return;
      }
    }
    code.accept(failure);
  }

  @Override
  public String opName() {
    return opName;
  }

  @Override
  public int sourceRank() {
    if (!opName.equals("recv") || !isCompleted()) {
      throw new IllegalStateException(
          describe() + " has no source rank; expected a receive that is done");
    }
    return peer;
  }

  @Override
  public long sequenceNumber() {
    return sequence;
  }

  @Override
  public String toString() {
    State s = state;
    String text =
        switch (s) {
          case POSTED -> "posted";
          case LAUNCHED -> "launched";
          case DONE -> "done";
          case FAILED -> "failed: " + failure;
        };
    return "Work(" + opName + ", seq " + sequence + ", " + text + ")";
  }
}
