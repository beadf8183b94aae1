package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.cudart.cudaErrorMemoryAllocation;
import static org.bytedeco.cuda.global.cudart.cudaFree;
import static org.bytedeco.cuda.global.cudart.cudaMalloc;

import dev.weft.tensor.memory.OutOfNativeMemoryError;
import dev.weft.tensor.memory.StorageCleaner;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.jspecify.annotations.Nullable;

/**
 * The memory of one device: takes large segments from CUDA, hands out blocks of them, and keeps
 * what is freed for the same stream. A block goes back to its neighbours when they are free, too.
 * Thread-safe.
 *
 * <p>Requests are rounded up to 512 B. Those up to 1 MiB come from segments of 2 MiB, those under
 * 10 MiB from segments of 20 MiB, larger ones have a segment of their own, rounded up to 2 MiB.
 */
final class CachingAllocator {
  static final int GRAIN = 512;
  private static final long SMALL = 1L << 20;
  private static final long SMALL_SEGMENT = 2L << 20;
  private static final long MEDIUM = 10L << 20;
  private static final long MEDIUM_SEGMENT = 20L << 20;
  private static final long ROUND_LARGE = 2L << 20;

  private static final Object CREATION = new Object();
  private static volatile @Nullable CachingAllocator[] devices = new CachingAllocator[0];

  private final int device;
  private final List<@Nullable FreeBlocks[]> pools = new ArrayList<>();
  // Freed blocks that other streams have used: first without, then with events behind that use.
  private final ArrayDeque<Block> used = new ArrayDeque<>();
  private final ArrayDeque<Waiting> waiting = new ArrayDeque<>();
  private final Counters counters = new Counters();

  /** A piece of a segment. */
  static final class Block {
    final long address;
    final CudaStream stream;
    final FreeBlocks pool;
    long size;
    boolean free;
    // Neighbours in the segment.
    @Nullable Block before;
    @Nullable Block after;
    // Neighbours in the list of free blocks of about this size.
    @Nullable Block previousFree;
    @Nullable Block nextFree;
    @Nullable Set<CudaStream> users;

    Block(long address, long size, CudaStream stream, FreeBlocks pool) {
      this.address = address;
      this.size = size;
      this.stream = stream;
      this.pool = pool;
    }

    long address() {
      return address;
    }

    CudaStream stream() {
      return stream;
    }
  }

  private record Waiting(Block block, List<CudaEvent> events) {}

  /** The figures behind {@link CudaMemory.Stats}. */
  private static final class Counters {
    long allocated;
    long peakAllocated;
    long reserved;
    long peakReserved;
    long blocks;
    long requests;
    long segments;
    long retries;
  }

  private CachingAllocator(int device) {
    this.device = device;
  }

  static CachingAllocator of(int device) {
    @Nullable CachingAllocator[] all = devices;
    if (device >= 0 && device < all.length) {
      CachingAllocator a = all[device];
      if (a != null) {
        return a;
      }
    }
    return make(device);
  }

  private static CachingAllocator make(int device) {
    Cuda.check(device);
    synchronized (CREATION) {
      @Nullable CachingAllocator[] all =
          Arrays.copyOf(devices, Math.max(devices.length, device + 1));
      CachingAllocator a = all[device];
      if (a == null) {
        a = new CachingAllocator(device);
        all[device] = a;
        devices = all;
      }
      return a;
    }
  }

  Block allocate(long bytes, CudaStream stream) {
    if (bytes < 0) {
      throw new IllegalArgumentException("bytes " + bytes + " is negative");
    }
    long size = Math.max(GRAIN, (bytes + GRAIN - 1) & -GRAIN);
    Block block = tryAllocate(size, stream);
    if (block == null) {
      // What the collector finds unreachable may make room; not under the lock, which frees need.
      StorageCleaner.collectAndDrain();
      synchronized (this) {
        counters.retries++;
        finishWaiting();
        releaseSegments();
      }
      block = tryAllocate(size, stream);
    }
    if (block == null) {
      long[] info = Cuda.memoryInfo(device);
      throw new OutOfNativeMemoryError(
          "cannot allocate "
              + bytes
              + " B on cuda:"
              + device
              + ": "
              + CudaMemory.stats(device)
              + "; the driver reports "
              + info[0]
              + " B free of "
              + info[1]
              + " B");
    }
    return block;
  }

  private synchronized @Nullable Block tryAllocate(long size, CudaStream stream) {
    if (!used.isEmpty() || !waiting.isEmpty()) {
      takeBackUsed();
    }
    boolean small = size <= SMALL;
    FreeBlocks pool = pool(stream, small);
    Block block = pool.take(size);
    if (block == null) {
      block = newSegment(size, stream, pool, small);
      if (block == null) {
        return null;
      }
    }
    long rest = block.size - size;
    if (small ? rest >= GRAIN : rest > SMALL) {
      Block tail = new Block(block.address + size, rest, stream, pool);
      tail.before = block;
      tail.after = block.after;
      if (tail.after != null) {
        tail.after.before = tail;
      }
      block.after = tail;
      block.size = size;
      pool.add(tail);
    }
    counters.requests++;
    counters.blocks++;
    counters.allocated += block.size;
    counters.peakAllocated = Math.max(counters.peakAllocated, counters.allocated);
    return block;
  }

  private FreeBlocks pool(CudaStream stream, boolean small) {
    while (pools.size() <= stream.id()) {
      pools.add(null);
    }
    FreeBlocks @Nullable [] pair = pools.get(stream.id());
    if (pair == null) {
      pair = new FreeBlocks[] {new FreeBlocks(), new FreeBlocks()};
      pools.set(stream.id(), pair);
    }
    return pair[small ? 0 : 1];
  }

  private @Nullable Block newSegment(long size, CudaStream stream, FreeBlocks pool, boolean small) {
    long bytes =
        small
            ? SMALL_SEGMENT
            : size < MEDIUM ? MEDIUM_SEGMENT : (size + ROUND_LARGE - 1) & -ROUND_LARGE;
    long address = fromDriver(bytes);
    if (address == 0) {
      counters.retries++;
      finishWaiting();
      Block freed = pool.take(size);
      if (freed != null) {
        return freed;
      }
      releaseSegments();
      address = fromDriver(bytes);
    }
    if (address == 0) {
      return null;
    }
    counters.segments++;
    counters.reserved += bytes;
    counters.peakReserved = Math.max(counters.peakReserved, counters.reserved);
    return new Block(address, bytes, stream, pool);
  }

  private long fromDriver(long bytes) {
    CudaThread.bind(device);
    try (PointerPointer<Pointer> out = new PointerPointer<>(1)) {
      int code = cudaMalloc(out, bytes);
      if (code == cudaErrorMemoryAllocation) {
        int unused = cudart.cudaGetLastError();
        return 0;
      }
      CudaCheck.runtime("cudaMalloc(" + bytes + " B on cuda:" + device + ")", code);
      return out.get().address();
    }
  }

  /** Takes a block back; makes no CUDA call, so that a cleaner may call it. */
  synchronized void free(Block block) {
    counters.blocks--;
    counters.allocated -= block.size;
    if (block.users == null) {
      giveBack(block);
    } else {
      used.add(block);
    }
  }

  private void giveBack(Block block) {
    FreeBlocks pool = block.pool;
    Block merged = block;
    Block before = block.before;
    if (before != null && before.free) {
      pool.remove(before);
      before.size += block.size;
      before.after = block.after;
      if (block.after != null) {
        block.after.before = before;
      }
      merged = before;
    }
    Block after = merged.after;
    if (after != null && after.free) {
      pool.remove(after);
      merged.size += after.size;
      merged.after = after.after;
      if (after.after != null) {
        after.after.before = merged;
      }
    }
    pool.add(merged);
  }

  synchronized void recordStream(Block block, CudaStream stream) {
    if (stream != block.stream) {
      if (block.users == null) {
        block.users = new HashSet<>(4);
      }
      block.users.add(stream);
    }
  }

  /**
   * Marks where other streams' use of freed blocks ends, and takes back what they are done with.
   */
  private void takeBackUsed() {
    Block block;
    while ((block = used.poll()) != null) {
      List<CudaEvent> events = new ArrayList<>(1);
      if (block.users != null) {
        for (CudaStream user : block.users) {
          events.add(new CudaEvent(user.device(), false).record(user));
        }
      }
      block.users = null;
      waiting.add(new Waiting(block, events));
    }
    for (Iterator<Waiting> it = waiting.iterator(); it.hasNext(); ) {
      Waiting w = it.next();
      while (!w.events.isEmpty() && w.events.get(w.events.size() - 1).isDone()) {
        w.events.remove(w.events.size() - 1).close();
      }
      if (!w.events.isEmpty()) {
        break; // later ones are likely to be busy, too
      }
      it.remove();
      giveBack(w.block);
    }
  }

  private void finishWaiting() {
    takeBackUsed();
    Waiting w;
    while ((w = waiting.poll()) != null) {
      for (CudaEvent e : w.events) {
        e.synchronize();
        e.close();
      }
      giveBack(w.block);
    }
  }

  /** Gives whole free segments back to CUDA. */
  synchronized void emptyCache() {
    finishWaiting();
    releaseSegments();
  }

  private void releaseSegments() {
    CudaThread.bind(device);
    for (FreeBlocks @Nullable [] pair : pools) {
      if (pair != null) {
        for (FreeBlocks pool : pair) {
          for (Block b : pool.whole()) {
            pool.remove(b);
            // cudaFree waits for the device, so no work can still use it.
            CudaCheck.runtime("cudaFree", cudaFree(new RawPointer(b.address)));
            counters.segments--;
            counters.reserved -= b.size;
          }
        }
      }
    }
  }

  synchronized CudaMemory.Stats stats() {
    return new CudaMemory.Stats(
        counters.allocated,
        counters.peakAllocated,
        counters.reserved,
        counters.peakReserved,
        counters.blocks,
        counters.requests,
        counters.segments,
        counters.retries);
  }

  synchronized void resetPeak() {
    counters.peakAllocated = counters.allocated;
    counters.peakReserved = counters.reserved;
  }
}
