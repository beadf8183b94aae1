package dev.weft.c10d.store;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.StoreException;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A store in the memory of one JVM, for ranks that are its threads. Any number of threads may use
 * it at once. It takes keys and values of any size.
 */
public final class HashStore extends TableStore {
  /** What a store and its views share; the lock guards the rest. */
  private static final class Shared {
    final ReentrantLock lock = new ReentrantLock();
    final Condition changed = lock.newCondition();
    final Table table = new Table(Table.Journal.NONE);
    boolean closed;
  }

  private final Shared shared;
  private final boolean owner;

  /** Makes an empty store whose waits last five minutes at most. */
  public HashStore() {
    this(TcpStore.DEFAULT_TIMEOUT);
  }

  /**
   * Makes an empty store.
   *
   * @param timeout how long waits without a timeout last at most
   */
  public HashStore(Duration timeout) {
    this(new Shared(), timeout, true);
  }

  private HashStore(Shared shared, Duration timeout, boolean owner) {
    super(timeout);
    this.shared = shared;
    this.owner = owner;
  }

  @Override
  <T> T transact(Function<Table, T> action) {
    shared.lock.lock();
    try {
      checkOpen();
      T result = action.apply(shared.table);
      shared.changed.signalAll();
      return result;
    } finally {
      shared.lock.unlock();
    }
  }

  @Override
  <T> Optional<T> await(Deadline deadline, Function<Table, @Nullable T> action) {
    shared.lock.lock();
    try {
      while (true) {
        checkOpen();
        T result = action.apply(shared.table);
        if (result != null) {
          return Optional.of(result);
        }
        long nanos = deadline.remainingNanos();
        if (nanos == 0) {
          return Optional.empty();
        }
        // A spurious wake-up only means one more look.
        shared.changed.awaitNanos(nanos);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoreException("interrupted while waiting in " + this, e);
    } finally {
      shared.lock.unlock();
    }
  }

  @Override
  public Store withTimeout(Duration timeout) {
    return new HashStore(shared, timeout, false);
  }

  @Override
  public void close() {
    if (!owner) {
      return;
    }
    shared.lock.lock();
    try {
      shared.closed = true;
      shared.changed.signalAll();
    } finally {
      shared.lock.unlock();
    }
  }

  @Override
  public String toString() {
    return "HashStore";
  }

  private void checkOpen() {
    if (shared.closed) {
      throw new StoreException(this + " is closed");
    }
  }
}
