package dev.weft.tensor;

import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The memory under one or more tensors: an address, a size, a reference count, a version and a
 * gate. Counting and the gate are thread-safe; the data is not: hand a storage to another thread
 * through a release/acquire point (a queue, a future, {@code Thread.start}).
 *
 * <p>A storage starts with one reference, its maker's: the {@link TensorScope} that was open, or
 * nobody's, in which case only the collector finds out that it is no longer used. Who needs it
 * longer calls {@link #retain()}, and {@link #release()} when done.
 */
public abstract class Storage {
  private final Device device;
  private final long byteSize;
  private final AtomicInteger references = new AtomicInteger(1);
  private volatile @Nullable Pending pending;
  private volatile int version;
  // The scope that holds the maker's reference; written by the scope's thread.
  private volatile @Nullable TensorScope owner;

  /** For storages of each device. */
  protected Storage(Device device, long byteSize) {
    this.device = device;
    this.byteSize = byteSize;
    this.owner = TensorScope.adopt(this);
  }

  /** Where the memory lies. */
  public final Device device() {
    return device;
  }

  /** Its size in bytes. */
  public final long byteSize() {
    return byteSize;
  }

  /**
   * The address of the first byte, past the gate: pending data has arrived when this returns.
   *
   * @throws IllegalStateException if the memory has been freed
   */
  public final long address() {
    Pending p = pending;
    if (p != null) {
      settle(p);
    }
    return rawAddress();
  }

  /** The address without waiting, for the work that fills the storage. */
  public final long rawAddress() {
    if (references.get() <= 0) {
      throw new IllegalStateException(
          "the storage ("
              + byteSize
              + " B on "
              + device
              + ") has been freed: its TensorScope was closed or it was released; keep the tensor"
              + " with TensorScope.keep");
    }
    return baseAddress();
  }

  /** The address, with no check. */
  protected abstract long baseAddress();

  /** Frees the memory; called once, when the last reference goes. */
  protected abstract void free();

  /** Waits until pending data has arrived. */
  public final void await() {
    Pending p = pending;
    if (p != null) {
      settle(p);
    }
  }

  private void settle(Pending p) {
    try {
      p.await();
    } catch (RuntimeException e) {
      TensorScope.tell(e);
      throw e;
    }
    if (pending == p) {
      pending = null;
    }
  }

  /** The work that fills this storage, or null when nothing is outstanding. */
  public final @Nullable Pending pending() {
    return pending;
  }

  /** Closes the gate until {@code work} is done. */
  public final void setPending(Pending work) {
    await();
    pending = work;
  }

  /** How often the data was changed in place. */
  public final int version() {
    return version;
  }

  /** Counts a change in place. */
  @SuppressWarnings("NonAtomicVolatileUpdate") // in-place changes are the owner thread's
  public final void bumpVersion() {
    version++;
  }

  /** Adds a reference. */
  public final Storage retain() {
    while (true) {
      int n = references.get();
      if (n <= 0) {
        throw new IllegalStateException(
            "the storage (" + byteSize + " B on " + device + ") has been freed already");
      }
      if (references.compareAndSet(n, n + 1)) {
        return this;
      }
    }
  }

  /** Drops a reference; the last one frees the memory. */
  public final void release() {
    int n = references.decrementAndGet();
    if (n == 0) {
      Pending p = pending;
      if (p != null) {
        p.abandon();
      }
      free();
    } else if (n < 0) {
      references.incrementAndGet();
      throw new IllegalStateException("a storage was released more often than retained");
    }
  }

  /** True once the memory is gone. */
  public final boolean isFreed() {
    return references.get() <= 0;
  }

  /** The scope that holds the maker's reference, or null. */
  final @Nullable TensorScope owner() {
    return owner;
  }

  final void setOwner(@Nullable TensorScope scope) {
    owner = scope;
  }
}
