package dev.weft.funcol;

import dev.weft.c10d.Work;
import dev.weft.tensor.Pending;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.cuda.CudaStorage;
import dev.weft.tensor.cuda.CudaStream;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * A collective and the re-layout that follows it, which runs once, on the thread that first reads
 * the result. Thread-safe.
 */
final class Deferred implements Pending {
  private final Work work;
  private final @Nullable Runnable relayout;
  private final List<StridedTensor> staging;
  private final ReentrantLock lock = new ReentrantLock();
  private volatile boolean done;

  Deferred(Work work, @Nullable Runnable relayout, List<StridedTensor> staging) {
    this.work = work;
    this.relayout = relayout;
    this.staging = staging;
    for (StridedTensor t : staging) {
      t.storage().retain();
    }
  }

  @Override
  public void await() {
    if (!done && !lock.isHeldByCurrentThread()) {
      work.await();
      finish();
    }
  }

  @Override
  public void await(Duration timeout) {
    if (!done && !lock.isHeldByCurrentThread()) {
      work.await(timeout);
      finish();
    }
  }

  private void finish() {
    lock.lock();
    try {
      if (done) {
        return;
      }
      if (relayout != null) {
        relayout.run();
      }
      letGo();
    } finally {
      lock.unlock();
    }
  }

  private void letGo() {
    done = true;
    for (StridedTensor t : staging) {
      if (t.storage() instanceof CudaStorage c) {
        // The re-layout may have gone to another stream than the one its memory belongs to.
        CudaStream current = CudaStream.current(c.device().index());
        if (current != c.stream()) {
          c.recordStream(current);
        }
      }
      t.storage().release();
    }
  }

  @Override
  public void abandon() {
    lock.lock();
    try {
      if (!done) {
        letGo();
      }
    } finally {
      lock.unlock();
    }
  }

  @Override
  public boolean isCompleted() {
    return done || work.isCompleted();
  }

  @Override
  public @Nullable Throwable exception() {
    return work.exception();
  }

  Work work() {
    return work;
  }
}
