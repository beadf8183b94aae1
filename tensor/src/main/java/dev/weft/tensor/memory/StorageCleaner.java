package dev.weft.tensor.memory;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * The safety net under reference counting: frees blocks whose storage became unreachable without
 * having been released. Thread-safe; a daemon thread does the work, and an allocation that fails
 * drains the queue itself.
 */
public final class StorageCleaner {
  private static final ReferenceQueue<Object> QUEUE = new ReferenceQueue<>();
  private static final Set<Block> BLOCKS = ConcurrentHashMap.newKeySet();

  static {
    Thread thread = new Thread(StorageCleaner::run, "weft-storage-cleaner");
    thread.setDaemon(true);
    thread.start();
  }

  private StorageCleaner() {}

  /** A block with one owner; freed exactly once, by its owner or by the cleaner. */
  public static final class Block extends PhantomReference<Object> {
    private final Runnable free;
    private final AtomicBoolean freed = new AtomicBoolean();

    private Block(Object owner, Runnable free) {
      super(owner, QUEUE);
      this.free = free;
    }

    /** Frees the block now; later calls do nothing. */
    public void free() {
      if (freed.compareAndSet(false, true)) {
        BLOCKS.remove(this);
        clear();
        free.run();
      }
    }
  }

  /** Watches an owner; {@code free} must not refer to it. */
  public static Block register(Object owner, Runnable free) {
    Block block = new Block(owner, free);
    BLOCKS.add(block);
    return block;
  }

  /** Frees what the collector has already found. */
  public static void drain() {
    @Nullable Object found;
    while ((found = QUEUE.poll()) != null) {
      clean((Block) found);
    }
  }

  /** Asks for a collection, gives it a bounded time to report, and frees what it found. */
  public static void collectAndDrain() {
    System.gc();
    long deadline = System.nanoTime() + 500_000_000L;
    try {
      while (System.nanoTime() < deadline) {
        @Nullable Object found = QUEUE.remove(50);
        if (found == null) {
          break;
        }
        clean((Block) found);
        drain();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static void clean(Block block) {
    if (!block.freed.get()) {
      HostMemory.countCleaned();
    }
    block.free();
  }

  private static void run() {
    while (true) {
      try {
        clean((Block) QUEUE.remove());
      } catch (InterruptedException e) {
        return;
      }
    }
  }
}
