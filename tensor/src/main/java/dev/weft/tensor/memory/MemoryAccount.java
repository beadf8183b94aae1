package dev.weft.tensor.memory;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Counts the host tensors that one thread makes while it is open there: how many bytes are live,
 * and the most at any time; whichever thread lets them go. So the ranks of a world of threads can
 * be told apart. Counters are thread-safe; accounts of a thread nest, and the innermost counts.
 */
public final class MemoryAccount implements AutoCloseable {
  private static final ThreadLocal<@Nullable MemoryAccount> CURRENT = new ThreadLocal<>();
  // So that allocations cost nothing where nobody counts.
  private static final AtomicInteger OPEN = new AtomicInteger();

  private final @Nullable MemoryAccount before = CURRENT.get();
  private final AtomicLong live = new AtomicLong();
  private final AtomicLong peak = new AtomicLong();

  private MemoryAccount() {
    CURRENT.set(this);
    int unused = OPEN.incrementAndGet();
  }

  /** Opens one on this thread. */
  public static MemoryAccount open() {
    return new MemoryAccount();
  }

  /** The calling thread's, or null. */
  public static @Nullable MemoryAccount current() {
    return OPEN.get() == 0 ? null : CURRENT.get();
  }

  /** Counts bytes that were allocated. */
  public void charge(long bytes) {
    long now = live.addAndGet(bytes);
    if (now > peak.get()) {
      long unused = peak.accumulateAndGet(now, Math::max);
    }
  }

  /** Counts bytes that were freed. */
  public void credit(long bytes) {
    long unused = live.addAndGet(-bytes);
  }

  /** Bytes that are live. */
  public long liveBytes() {
    return live.get();
  }

  /** The most bytes that were live at a time, since the start or {@link #resetPeak}. */
  public long peakBytes() {
    return peak.get();
  }

  /** Has the peak start from what is live now. */
  public void resetPeak() {
    peak.set(live.get());
  }

  /** Ends the counting of new ones; to be called by the thread that opened it. */
  @Override
  public void close() {
    int unused = OPEN.decrementAndGet();
    if (before == null) {
      CURRENT.remove();
    } else {
      CURRENT.set(before);
    }
  }
}
