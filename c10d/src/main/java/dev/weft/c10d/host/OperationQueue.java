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
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The collectives of one group on one rank, one at a time in the order of the calls. A synchronous
 * one runs on its caller's thread when nothing is queued, and so does any of a group of one rank;
 * the rest run on a daemon thread that exists while there is something to do and a little longer,
 * or on their caller's where it waits for one before that thread is up. Thread-safe.
 */
final class OperationQueue {
  /** The work of one collective. */
  interface Body {
    void run(Round round, Staging staging);
  }

  private static final long LINGER_NANOS = 1_000_000_000L;

  private final HostGroup group;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition idle = lock.newCondition();
  private final ArrayDeque<Task> queue = new ArrayDeque<>();
  // Whether a thread is carrying one out; whoever finds none running may take the next.
  private boolean running;
  private boolean closed;
  // The daemon thread, while there is one, and whether it must be woken.
  private @Nullable Thread progress;
  private boolean asleep;
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
    private final Thread caller = Thread.currentThread();
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
        try {
          tellOthers(e);
        } finally {
          boolean unused = fail(e);
        }
        return;
      } finally {
        round = null;
      }
      try {
        boolean unused = complete();
      } catch (RuntimeException | Error e) { // of the memory that it held
        broken = e;
        boolean unused = fail(e);
      }
    }

    /** The others know of what is common to all, and of what each finds out by itself. */
    private void tellOthers(Throwable e) {
      Round r = round;
      boolean own = !(e instanceof DistributedException) || (r != null && r.wasInterrupted());
      if (!own) {
        return;
      }
      String call = opName() + " (seq " + sequenceNumber() + ")";
      try {
        int rank = group.globalRank(group.rank());
        group.giveUp(sequenceNumber(), "rank " + rank + " has given up " + call + ": " + e);
      } catch (RuntimeException | Error other) {
        e.addSuppressed(other); // nobody is there to be told
      }
    }

    @Override
    public void await() {
      // An interrupt ends the wait; and the operation where this thread carries it out.
      Thread here = Thread.currentThread();
      if (!isCompleted() && here == caller && !here.isInterrupted()) {
        help(this);
      }
      super.await();
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
      boolean free = !running && queue.isEmpty();
      here = free && (!async || group.size() == 1); // alone, it waits for nobody
      if (free && !here) {
        wakeProgress(); // first: where there are no threads left, nothing has been counted
      }
      task = new Task(name, ++sequence, timeout, outputs, held, body);
      if (here) {
        running = true;
      } else {
        queue.add(task);
      }
    } finally {
      lock.unlock();
    }
    if (here) {
      try {
        task.run(true);
      } finally {
        release();
      }
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
    if (group.hasEnded()) {
      group.checkAlive(() -> name + " in group " + group.describe(), Long.MAX_VALUE);
    }
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

  /**
   * The next one to be carried out by this thread, or null where there is none for it.
   *
   * @param wanted what this thread waits for, or null if nothing
   */
  private @Nullable Task take(@Nullable Task wanted) {
    lock.lock();
    try {
      // What has ended did so before its thread's turn: it cannot be in the queue.
      boolean late = running || (wanted != null && wanted.isCompleted());
      Task next = late ? null : queue.poll();
      running |= next != null;
      return next;
    } finally {
      lock.unlock();
    }
  }

  /** Ends this thread's turn, and takes the next operation in the same step if there is one. */
  private @Nullable Task takeAnother() {
    lock.lock();
    try {
      Task next = queue.poll();
      if (next == null) {
        running = false;
        idle.signalAll();
      }
      return next;
    } finally {
      lock.unlock();
    }
  }

  /** Ends the turn of a thread that has other things to do: the rest is the daemon thread's. */
  private void release() {
    lock.lock();
    try {
      running = false;
      if (queue.isEmpty()) {
        idle.signalAll();
      } else {
        wakeProgress();
      }
    } finally {
      lock.unlock();
    }
  }

  /** Carries out what is queued up to {@code wanted}, unless another thread is at it. */
  private void help(Task wanted) {
    Task next = take(wanted);
    while (next != null) {
      next.run(true);
      if (wanted.isCompleted()) {
        release();
        return;
      }
      next = takeAnother();
    }
  }

  /**
   * Has the daemon thread look at the queue, with the lock held. It takes so long to be up that a
   * caller who waits at once has carried out its operation before.
   */
  private void wakeProgress() {
    if (progress == null) {
      String name = "weft-progress-" + group.context().rankContext().rank();
      Thread made = new Thread(this::progress, name);
      made.setDaemon(true);
      made.start();
      progress = made;
    } else if (asleep) {
      asleep = false;
      LockSupport.unpark(progress);
    }
  }

  private void progress() {
    do {
      Task next = take(null);
      while (next != null) {
        next.run(false);
        next = takeAnother();
      }
    } while (awaitMore());
  }

  /** Lets the daemon thread sleep until it is woken; false where it ends instead. */
  private boolean awaitMore() {
    lock.lock();
    try {
      if (!running && !queue.isEmpty()) {
        return true;
      }
      if (closed && queue.isEmpty()) {
        progress = null;
        return false;
      }
      asleep = true;
    } finally {
      lock.unlock();
    }
    long begin = System.nanoTime();
    while (true) {
      LockSupport.parkNanos(this, LINGER_NANOS);
      boolean over = System.nanoTime() - begin >= LINGER_NANOS;
      lock.lock();
      try {
        if (!asleep) {
          return true;
        }
        if (over || closed) {
          progress = null;
          asleep = false;
          return false;
        }
      } finally {
        lock.unlock();
      }
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
      if (asleep) {
        LockSupport.unpark(progress); // to end
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
      while (running || !queue.isEmpty()) {
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
