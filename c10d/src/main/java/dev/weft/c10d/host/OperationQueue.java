package dev.weft.c10d.host;

import dev.weft.c10d.CompletableWork;
import dev.weft.c10d.Deadline;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.tensor.Storage;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The collectives of one group on one rank, one at a time in the order of the calls. A synchronous
 * one runs on its caller's thread when nothing is queued; the rest run on a daemon thread that
 * exists while there is something to do. Thread-safe.
 */
final class OperationQueue {
  /** The work of one collective. */
  interface Body {
    void run(Round round, Staging staging);
  }

  private final HostGroup group;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition idle = lock.newCondition();
  private final ArrayDeque<Task> queue = new ArrayDeque<>();
  private boolean busy;
  private boolean closed;
  private long sequence;
  private volatile @Nullable Throwable broken;

  OperationQueue(HostGroup group) {
    this.group = group;
  }

  /** One collective. */
  private final class Task extends CompletableWork {
    private final Body body;
    private final List<Storage> held;
    private final Duration timeout;
    private volatile @Nullable Round round;

    Task(
        String name,
        long sequence,
        Duration timeout,
        List<StridedTensor> outputs,
        List<Storage> held,
        Body body) {
      super(name, sequence, List.<Tensor>copyOf(outputs), held);
      this.timeout = timeout;
      this.body = body;
      this.held = held;
    }

    void run(boolean callers) {
      Throwable earlier = broken;
      if (earlier != null) {
        boolean unused = fail(unusable(opName(), earlier));
        return;
      }
      // Closed in reverse: lent memory is back before staged memory is freed.
      try (Staging staging = new Staging(held);
          Round r =
              new Round(group, sequenceNumber(), opName(), Deadline.after(timeout), callers)) {
        round = r;
        body.run(r, staging);
        r.awaitLoans();
      } catch (RuntimeException | Error e) {
        broken = e;
        boolean unused = fail(e);
        return;
      } finally {
        round = null;
      }
      boolean unused = complete();
    }

    @Override
    protected String describeProgress() {
      Round r = round;
      if (r == null) {
        return ": it is queued";
      }
      List<Integer> missing = r.missingRanks();
      return missing.isEmpty() ? "" : ": ranks " + missing + " did not arrive";
    }
  }

  /** Runs a collective, or queues it. */
  CompletableWork submit(
      String name,
      boolean async,
      Duration timeout,
      List<StridedTensor> outputs,
      List<Storage> held,
      Body body) {
    Task task;
    boolean here;
    lock.lock();
    try {
      check(name);
      task = new Task(name, ++sequence, timeout, outputs, held, body);
      here = !async && !busy;
      if (!here) {
        queue.add(task);
      }
      if (!busy) {
        busy = true;
        if (!here) {
          ProgressThreads.POOL.execute(this::drain);
        }
      }
    } finally {
      lock.unlock();
    }
    if (here) {
      task.run(true);
      release();
    }
    if (!async) {
      task.await();
    }
    return task;
  }

  private void check(String name) {
    if (closed) {
      throw new IllegalStateException(name + ": group " + group.describe() + " has been destroyed");
    }
    Throwable earlier = broken;
    if (earlier != null) {
      throw unusable(name, earlier);
    }
    Failure failure = group.mailbox().failure();
    if (failure != null) {
      throw HostGroup.peerFailed(name + " in group " + group.describe(), failure);
    }
    group.checkAlive(() -> name + " in group " + group.describe());
  }

  private DistributedException unusable(String name, Throwable earlier) {
    return new DistributedException(
        name
            + ": group "
            + group.describe()
            + " is unusable since an earlier operation failed: "
            + earlier.getMessage(),
        earlier);
  }

  /** After a synchronous operation: hands over to the thread if something was queued meanwhile. */
  private void release() {
    lock.lock();
    try {
      if (queue.isEmpty()) {
        busy = false;
        idle.signalAll();
      } else {
        ProgressThreads.POOL.execute(this::drain);
      }
    } finally {
      lock.unlock();
    }
  }

  private void drain() {
    Thread thread = Thread.currentThread();
    String before = thread.getName();
    thread.setName("weft-progress-" + group.context().rankContext().rank());
    try {
      while (true) {
        Task next;
        lock.lock();
        try {
          next = queue.poll();
          if (next == null) {
            busy = false;
            idle.signalAll();
            return;
          }
        } finally {
          lock.unlock();
        }
        next.run(false);
      }
    } finally {
      thread.setName(before);
    }
  }

  /**
   * Waits for what is under way, then refuses the rest.
   *
   * @return false if something is under way still
   */
  boolean close(Duration timeout) {
    List<Task> rest = new ArrayList<>();
    boolean ended;
    lock.lock();
    try {
      closed = true;
      ended = awaitIdle(timeout.toNanos());
      if (!ended) {
        rest.addAll(queue);
        queue.clear();
        group.abort(new OperationTimeoutException("the group was destroyed with work under way"));
        ended = awaitIdle(5_000_000_000L);
      }
    } finally {
      lock.unlock();
    }
    for (Task t : rest) {
      boolean unused = t.fail(new IllegalStateException(t.opName() + ": the group was destroyed"));
    }
    return ended;
  }

  private boolean awaitIdle(long nanos) {
    long left = nanos;
    boolean interrupted = false;
    try {
      while (busy) {
        if (left <= 0) {
          return false;
        }
        try {
          left = idle.awaitNanos(left);
        } catch (InterruptedException e) {
          interrupted = true;
          left = Math.min(left, 1_000_000_000L);
        }
      }
      return true;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
