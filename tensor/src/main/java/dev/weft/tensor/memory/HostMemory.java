package dev.weft.tensor.memory;

import java.util.ArrayDeque;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The allocator of host tensors: native blocks by size class, with a bounded pool of free ones, all
 * counted. Thread-safe. Every block is at least 64-byte aligned.
 *
 * <p>The limit on live bytes is the system property {@code weft.memory.host.limit} (bytes; 0, the
 * default, means none), the pool's bound {@code weft.memory.host.pool} (bytes; default 256 MiB).
 */
public final class HostMemory {
  private static final int ALIGN = 64;
  private static final long LIMIT = Long.getLong("weft.memory.host.limit", 0);
  private static final long POOL_LIMIT = Long.getLong("weft.memory.host.pool", 256L << 20);
  private static final int CLASSES = 4 * 64;

  private static final AtomicLong LIVE = new AtomicLong();
  private static final AtomicLong BLOCKS = new AtomicLong();
  private static final AtomicLong PEAK = new AtomicLong();
  private static final AtomicLong POOLED = new AtomicLong();
  private static final AtomicLong CLEANED = new AtomicLong();

  // One free list a size class; a list is its own lock.
  private static final FreeList[] POOL = new FreeList[CLASSES];

  static {
    for (int i = 0; i < CLASSES; i++) {
      POOL[i] = new FreeList();
    }
  }

  private HostMemory() {}

  private static final class FreeList {
    final ArrayDeque<Long> raw = new ArrayDeque<>();
  }

  /** A snapshot of the counters, in bytes but for the two counts. */
  public record Stats(
      long liveBytes, long liveBlocks, long peakBytes, long pooledBytes, long cleanedBlocks) {
    @Override
    public String toString() {
      return liveBytes
          + " B live in "
          + liveBlocks
          + " blocks (peak "
          + peakBytes
          + " B), "
          + pooledBytes
          + " B pooled, "
          + cleanedBlocks
          + " blocks freed by the cleaner";
    }
  }

  /** The counters now. */
  public static Stats stats() {
    return new Stats(LIVE.get(), BLOCKS.get(), PEAK.get(), POOLED.get(), CLEANED.get());
  }

  /** Bytes that live storages asked for. */
  public static long liveBytes() {
    return LIVE.get();
  }

  /**
   * Allocates a block; its content is arbitrary.
   *
   * @param bytes at least 0; a block of 0 bytes has an address, too
   * @throws OutOfNativeMemoryError if the limit or the machine allows no more
   */
  public static long allocate(long bytes) {
    int sizeClass = sizeClass(bytes);
    long address = reserve(bytes) ? take(sizeClass) : 0;
    if (address == 0) {
      // Slow path: what the collector has found unreachable, and the pool, may make room.
      StorageCleaner.drain();
      trim();
      if (LIVE.get() + bytes <= limit()) {
        address = take(sizeClass);
      }
      if (address == 0) {
        StorageCleaner.collectAndDrain();
        trim();
        if (LIVE.get() + bytes <= limit()) {
          address = take(sizeClass);
        }
      }
      if (address == 0) {
        throw new OutOfNativeMemoryError(
            "cannot allocate "
                + bytes
                + " B of host memory: "
                + stats()
                + ", limit "
                + LIMIT
                + " B");
      }
    }
    long live = LIVE.addAndGet(bytes);
    BLOCKS.incrementAndGet();
    if (live > PEAK.get()) {
      PEAK.accumulateAndGet(live, Math::max);
    }
    return address;
  }

  /** Gives a block back; {@code bytes} is what it was allocated with. */
  public static void free(long address, long bytes) {
    LIVE.addAndGet(-bytes);
    BLOCKS.decrementAndGet();
    int sizeClass = sizeClass(bytes);
    long size = classSize(sizeClass);
    if (POOLED.addAndGet(size) <= POOL_LIMIT) {
      FreeList list = POOL[sizeClass];
      synchronized (list) {
        list.raw.push(address);
      }
    } else {
      POOLED.addAndGet(-size);
      release(address);
    }
  }

  /** Returns the pool's free blocks to the operating system. */
  public static void trim() {
    for (int i = 0; i < CLASSES; i++) {
      FreeList list = POOL[i];
      synchronized (list) {
        while (!list.raw.isEmpty()) {
          release(list.raw.pop());
          POOLED.addAndGet(-classSize(i));
        }
      }
    }
  }

  static void countCleaned() {
    CLEANED.incrementAndGet();
  }

  private static boolean reserve(long bytes) {
    if (bytes < 0) {
      throw new IllegalArgumentException("bytes " + bytes + " is negative");
    }
    return LIVE.get() + bytes <= limit();
  }

  private static long limit() {
    return LIMIT > 0 ? LIMIT : Long.MAX_VALUE / 2;
  }

  private static long take(int sizeClass) {
    FreeList list = POOL[sizeClass];
    synchronized (list) {
      Long pooled = list.raw.poll();
      if (pooled != null) {
        POOLED.addAndGet(-classSize(sizeClass));
        return pooled;
      }
    }
    try {
      // The true start of the block lies in the eight bytes before the aligned address.
      long start = Memory.malloc(classSize(sizeClass) + ALIGN + 8);
      long aligned = (start + 8 + ALIGN - 1) & -ALIGN;
      Memory.putLong(aligned - 8, start);
      return aligned;
    } catch (OutOfMemoryError e) {
      return 0;
    }
  }

  private static void release(long address) {
    Memory.free(Memory.getLong(address - 8));
  }

  /** Four classes for each power of two, from 64 bytes up. */
  static int sizeClass(long bytes) {
    long b = Math.max(bytes, 64) - 1;
    int log = 63 - Long.numberOfLeadingZeros(b);
    int quarter = (int) ((b >>> (log - 2)) & 3);
    return (log << 2) + quarter;
  }

  static long classSize(int sizeClass) {
    int log = sizeClass >> 2;
    return (1L << log) + ((sizeClass & 3) + 1L) * (1L << (log - 2));
  }
}
