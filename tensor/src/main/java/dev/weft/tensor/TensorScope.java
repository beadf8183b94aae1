package dev.weft.tensor;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Owns the storages that are made while it is open on its thread, and lets them go when it is
 * closed. Scopes nest and belong to the thread that opened them; close them in reverse order, best
 * by try-with-resources.
 *
 * <p>Closing waits for pending work on its storages, at most {@link #closeTimeout}; a storage that
 * something else has retained (a parameter's holder, a saved tensor, running work) outlives it. A
 * failure of that work is thrown, unless the thread was given it before: it is under way then, or
 * was dealt with.
 */
public final class TensorScope implements AutoCloseable {
  private static final ThreadLocal<@Nullable TensorScope> CURRENT = new ThreadLocal<>();

  private final @Nullable TensorScope parent;
  private final boolean owning;
  private final boolean waiting;
  private final Thread thread = Thread.currentThread();
  private final List<Storage> storages = new ArrayList<>();
  private Duration closeTimeout = Duration.ofMinutes(30);
  private boolean closed;
  // Failures of work that this thread was given while the scope was open.
  private @Nullable Set<Throwable> told;

  private TensorScope(@Nullable TensorScope parent, boolean owning, boolean waiting) {
    this.parent = parent;
    this.owning = owning;
    this.waiting = waiting;
  }

  /** Opens a scope on this thread. */
  public static TensorScope open() {
    TensorScope scope = new TensorScope(CURRENT.get(), true, true);
    CURRENT.set(scope);
    return scope;
  }

  /**
   * Opens a scope that does not wait for pending work when it is closed: running work keeps its
   * memory itself. For code that hands pending results on, such as backward.
   */
  public static TensorScope openWithoutWaiting() {
    TensorScope scope = new TensorScope(CURRENT.get(), true, false);
    CURRENT.set(scope);
    return scope;
  }

  /**
   * Runs {@code body} with no scope: what it makes belongs to nobody but who retains it, as
   * parameters and optimiser state do.
   */
  public static <T extends @Nullable Object> T outside(Supplier<T> body) {
    TensorScope scope = new TensorScope(CURRENT.get(), false, false);
    CURRENT.set(scope);
    try {
      return body.get();
    } finally {
      scope.close();
    }
  }

  /** The innermost scope of this thread that owns what is made, or null. */
  public static @Nullable TensorScope current() {
    TensorScope scope = CURRENT.get();
    return scope != null && scope.owning ? scope : null;
  }

  /**
   * Says that the calling thread is about to be given a failure of pending work. Its open scopes
   * then do not throw the same again when they are closed, which would hide it: an exception cannot
   * be suppressed by itself. For what waits for work.
   */
  public static void tell(RuntimeException failure) {
    for (TensorScope s = CURRENT.get(); s != null; s = s.parent) {
      if (s.told == null) {
        s.told = Collections.newSetFromMap(new IdentityHashMap<>());
      }
      s.told.add(failure);
    }
  }

  /** Bounds the wait for pending work in {@link #close}. */
  public TensorScope closeTimeout(Duration timeout) {
    this.closeTimeout = timeout;
    return this;
  }

  /** How many storages this scope holds. */
  public int size() {
    return storages.size();
  }

  /**
   * Hands a tensor to the enclosing scope, or to nobody (its memory then lives until it is closed
   * or unreachable). Does nothing for a tensor of another scope.
   */
  public <T extends Tensor> T keep(T tensor) {
    for (Storage s : tensor.storages()) {
      keep(s);
    }
    return tensor;
  }

  private void keep(Storage storage) {
    if (storage.owner() != this) {
      return;
    }
    checkThread();
    // The most recent storages are the likeliest.
    for (int i = storages.size() - 1; i >= 0; i--) {
      if (storages.get(i) == storage) {
        storages.remove(i);
        break;
      }
    }
    TensorScope target = parent;
    if (target != null && target.owning) {
      target.storages.add(storage);
      storage.setOwner(target);
    } else {
      storage.setOwner(null);
    }
  }

  /** Hands the maker's reference of a storage to whoever calls; false where no scope held it. */
  static boolean disown(Storage storage) {
    TensorScope owner = storage.owner();
    if (owner == null) {
      return false;
    }
    owner.checkThread();
    owner.storages.remove(storage);
    storage.setOwner(null);
    return true;
  }

  /** Called by each new storage: its owner, or null. */
  static @Nullable TensorScope adopt(Storage storage) {
    TensorScope scope = current();
    if (scope != null) {
      scope.storages.add(storage);
    }
    return scope;
  }

  /** Moves a storage into this scope, which takes over the reference that the caller holds. */
  void take(Storage storage) {
    checkThread();
    storages.add(storage);
    storage.setOwner(this);
  }

  private void checkThread() {
    if (Thread.currentThread() != thread) {
      throw new IllegalStateException(
          "a TensorScope belongs to thread '"
              + thread.getName()
              + "' and was used on '"
              + Thread.currentThread().getName()
              + "'");
    }
  }

  @Override
  public void close() {
    if (closed) {
      return;
    }
    checkThread();
    TensorScope top = CURRENT.get();
    if (top != this) {
      throw new IllegalStateException(
          "TensorScopes must be closed in reverse order: another scope is still open inside");
    }
    closed = true;
    if (parent == null) {
      CURRENT.remove();
    } else {
      CURRENT.set(parent);
    }
    long deadline = System.nanoTime() + closeTimeout.toNanos();
    @Nullable RuntimeException failure = null;
    for (Storage s : storages) {
      Pending p = s.pending();
      if (waiting && p != null) {
        try {
          if (s.device().isCuda()) {
            // The stream waits, not the host; what is under way keeps its memory itself.
            p.await();
          } else {
            p.await(Duration.ofNanos(Math.max(1, deadline - System.nanoTime())));
          }
        } catch (RuntimeException e) {
          if (failure == null) {
            failure = told != null && told.contains(e) ? null : e;
          } else if (failure != e) {
            failure.addSuppressed(e);
          }
        }
      }
      s.setOwner(null);
      s.release();
    }
    storages.clear();
    if (failure != null) {
      throw failure;
    }
  }
}
