package dev.weft.c10d.store;

import com.google.common.util.concurrent.Striped;
import dev.weft.c10d.Deadline;
import dev.weft.c10d.StoreException;
import dev.weft.c10d.StoreTimeoutException;
import java.io.IOException;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A store in a file that all ranks can reach: processes of one machine, or of several over a file
 * system with working POSIX locks. Any number of threads may use it at once. The path must name a
 * file that is not there yet or that is empty, the same for all ranks; the last of {@code
 * worldSize} users to close its store removes the file.
 */
public final class FileStore extends TableStore {
  private static final long FIRST_PAUSE_NANOS = 100_000;
  private static final long LAST_PAUSE_NANOS = 20_000_000;

  /**
   * Keeps threads of this JVM apart, since a file lock holds for the whole process, and ends when
   * the process closes any of its handles of the file.
   */
  private static final Striped<Lock> IN_PROCESS = Striped.lock(64);

  /** What a store and its views share; guarded by the in-process lock. */
  private static final class Shared {
    final Path path;
    final int worldSize;
    final Lock lock;
    FileLog log;
    boolean closed;

    Shared(Path path, int worldSize, Lock lock, FileLog log) {
      this.path = path;
      this.worldSize = worldSize;
      this.lock = lock;
      this.log = log;
    }
  }

  private final Shared shared;
  private final boolean owner;

  private FileStore(Shared shared, Duration timeout, boolean owner) {
    super(timeout);
    this.shared = shared;
    this.owner = owner;
  }

  /**
   * Opens or creates the store of a file.
   *
   * @param path the file; its folder must be there
   * @param worldSize how many users will open it in all, for its removal; 0 if unknown, then it
   *     stays
   * @param timeout how long waits without a timeout last at most
   * @return the store
   * @throws StoreException if the folder is missing, or the file cannot be used
   */
  public static FileStore open(Path path, int worldSize, Duration timeout) {
    if (worldSize < 0) {
      throw new IllegalArgumentException(
          "worldSize is " + worldSize + "; expected 0 (unknown) or more");
    }
    var deadline = Deadline.after(timeout);
    Path real = resolve(path);
    try {
      while (true) {
        var shared = new Shared(real, worldSize, IN_PROCESS.get(real), new FileLog(real));
        var store = new FileStore(shared, timeout, true);
        if (store.join(deadline)) {
          return store;
        }
        // The last user of an earlier store removed the file between our opening and locking it.
      }
    } catch (IOException e) {
      throw new StoreException("file store " + path + " cannot be opened: " + e.getMessage(), e);
    }
  }

  private static Path resolve(Path path) {
    Path absolute = path.toAbsolutePath();
    Path folder = absolute.getParent();
    Path name = absolute.getFileName();
    if (folder == null || name == null || Files.isDirectory(absolute)) {
      throw new StoreException(
          "file store " + path + ": expected the path of a file, this is a folder");
    }
    if (!Files.isDirectory(folder)) {
      throw new StoreException("file store " + path + ": the folder " + folder + " does not exist");
    }
    try {
      return folder.toRealPath().resolve(name);
    } catch (IOException e) {
      throw new StoreException("file store " + path + " cannot be opened: " + e.getMessage(), e);
    }
  }

  private boolean join(Deadline deadline) throws IOException {
    boolean done = false;
    try {
      done =
          locked(
              deadline,
              log -> {
                if (!log.isRemoved()) {
                  log.join();
                }
                return !log.isRemoved();
              });
      return done;
    } finally {
      if (!done) {
        closeLog();
      }
    }
  }

  @Override
  <T> T transact(Function<Table, T> action) {
    return locked(Deadline.after(timeout()), log -> action.apply(log.table()));
  }

  @Override
  <T> Optional<T> await(Deadline deadline, Function<Table, @Nullable T> action) {
    long pause = FIRST_PAUSE_NANOS;
    while (true) {
      // The lock is only held for moments, so a wait of zero may still take it.
      var lockDeadline = deadline.hasPassed() ? Deadline.after(Duration.ofSeconds(1)) : deadline;
      long[] seen = {0};
      Optional<T> result =
          locked(
              lockDeadline,
              log -> {
                var found = Optional.<T>ofNullable(action.apply(log.table()));
                seen[0] = log.position();
                return found;
              });
      if (result.isPresent() || deadline.hasPassed()) {
        return result;
      }
      do {
        pause(Math.min(pause, Math.max(1, deadline.remainingNanos())));
        pause = Math.min(LAST_PAUSE_NANOS, pause * 2);
      } while (shared.path.toFile().length() <= seen[0] && !deadline.hasPassed() && !isClosed());
    }
  }

  private boolean isClosed() {
    shared.lock.lock();
    try {
      return shared.closed;
    } finally {
      shared.lock.unlock();
    }
  }

  private <T> T locked(Deadline deadline, Function<FileLog, T> action) {
    shared.lock.lock();
    try {
      if (shared.closed) {
        throw new StoreException(this + " is closed");
      }
      FileLock lock = lockFile(deadline);
      try {
        shared.log.replay();
        T result = action.apply(shared.log);
        shared.log.flush();
        return result;
      } finally {
        lock.release();
      }
    } catch (IOException e) {
      throw new StoreException(this + " cannot be used: " + e.getMessage(), e);
    } finally {
      shared.lock.unlock();
    }
  }

  private FileLock lockFile(Deadline deadline) throws IOException {
    long pause = FIRST_PAUSE_NANOS;
    while (true) {
      FileLock lock = shared.log.tryLock();
      if (lock != null) {
        return lock;
      }
      if (deadline.hasPassed()) {
        throw new StoreTimeoutException(
            "%s is locked by another process, and has been for %s".formatted(this, deadline));
      }
      pause(pause);
      pause = Math.min(LAST_PAUSE_NANOS, pause * 2);
    }
  }

  private void pause(long nanos) {
    LockSupport.parkNanos(nanos);
    if (Thread.currentThread().isInterrupted()) {
      throw new StoreException("interrupted while waiting in " + this);
    }
  }

  @Override
  public Store withTimeout(Duration timeout) {
    return new FileStore(shared, timeout, false);
  }

  /** Leaves the store and, as the last of its users, removes the file. */
  @Override
  public void close() {
    if (!owner || isClosed()) {
      return;
    }
    try {
      locked(
          Deadline.after(Duration.ofSeconds(5)),
          log -> {
            log.leave();
            if (log.present() <= 0 && shared.worldSize > 0 && log.joined() >= shared.worldSize) {
              log.remove();
              return shared.path.toFile().delete();
            }
            return false;
          });
    } finally {
      closeLog();
    }
  }

  private void closeLog() {
    shared.lock.lock();
    try {
      shared.closed = true;
      shared.log.close();
    } catch (IOException e) {
      throw new StoreException(this + " cannot be closed: " + e.getMessage(), e);
    } finally {
      shared.lock.unlock();
    }
  }

  @Override
  public String toString() {
    return "FileStore(" + shared.path + ")";
  }
}
