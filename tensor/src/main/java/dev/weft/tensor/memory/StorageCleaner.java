package dev.weft.tensor.memory;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import org.jspecify.annotations.Nullable;

/**
 * The safety net under reference counting: frees blocks whose storage became unreachable without
 * having been released. Thread-safe; a daemon thread does the work, and an allocation that fails
 * drains the queue itself.
 */
public final class StorageCleaner {
  private static final ReferenceQueue<Object> QUEUE = new ReferenceQueue<>();
  private static final int STRIPES = 16; // a power of two
  private static final Stripe[] BLOCKS = new Stripe[STRIPES];

  static {
    for (int i = 0; i < STRIPES; i++) {
      BLOCKS[i] = new Stripe();
    }
    Thread thread = new Thread(StorageCleaner::run, "weft-storage-cleaner");
    thread.setDaemon(true);
    thread.start();
  }

  private StorageCleaner() {}

  /** Keeps blocks reachable, in a list that costs no memory of its own; its own lock. */
  private static final class Stripe {
    private @Nullable Block first;

    synchronized void add(Block block) {
      Block next = first;
      block.next = next;
      if (next != null) {
        next.previous = block;
      }
      first = block;
    }

    /** False where it has been removed before. */
    synchronized boolean remove(Block block) {
      if (block.freed) {
        return false;
      }
      block.freed = true;
      Block previous = block.previous;
      Block next = block.next;
      if (previous == null) {
        first = next;
      } else {
        previous.next = next;
      }
      if (next != null) {
        next.previous = previous;
      }
      block.previous = null;
      block.next = null;
      return true;
    }

    synchronized boolean has(Block block) {
      return !block.freed;
    }
  }

  /** A block with one owner; freed exactly once, by its owner or by the cleaner. */
  public static final class Block extends PhantomReference<Object> {
    private final Runnable free;
    private final Stripe stripe;
    // The stripe's.
    private @Nullable Block previous;
    private @Nullable Block next;
    private boolean freed;

    private Block(Object owner, Runnable free, Stripe stripe) {
      super(owner, QUEUE);
      this.free = free;
      this.stripe = stripe;
    }

    /** Frees the block now; later calls do nothing. */
    public void free() {
      if (stripe.remove(this)) {
        clear();
        free.run();
      }
    }
  }

  /** Watches an owner; {@code free} must not refer to it. */
  public static Block register(Object owner, Runnable free) {
    Stripe stripe = BLOCKS[(int) Thread.currentThread().getId() & (STRIPES - 1)];
    Block block = new Block(owner, free, stripe);
    stripe.add(block);
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
    if (block.stripe.has(block)) {
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
