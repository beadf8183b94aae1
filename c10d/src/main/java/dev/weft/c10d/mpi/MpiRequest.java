package dev.weft.c10d.mpi;

import dev.weft.c10d.host.Fabric;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.Memory;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A request under way, with the arrays that MPI reads until it is done. Thread-safe. One that is
 * never done keeps its memory.
 */
final class MpiRequest implements Fabric.Transfer {
  /** Requests that are not done; the library cannot be shut down while there are any. */
  static final AtomicInteger UNDER_WAY = new AtomicInteger();

  private static final int HEAD = 16; // the handle, the flag

  private final String function;
  private final long statusIgnore;
  private final long block;
  private final long bytes;
  private volatile boolean done;

  private MpiRequest(String function, MpiAbi abi, long arrayBytes) {
    this.function = function;
    this.statusIgnore = abi.statusIgnore();
    this.bytes = HEAD + arrayBytes;
    this.block = HostMemory.allocate(bytes);
  }

  /** Starts something. */
  interface Start {
    /**
     * Calls the function.
     *
     * @param request where it puts its handle
     * @param arrays where the arrays are, one after the other
     */
    int call(long request, long arrays);
  }

  static MpiRequest start(String function, MpiAbi abi, Start start, int[]... arrays) {
    long total = 0;
    for (int[] a : arrays) {
      total += 4L * a.length;
    }
    MpiRequest made = new MpiRequest(function, abi, total);
    long at = made.block + HEAD;
    for (int[] a : arrays) {
      Memory.put(at, a, 0, a.length);
      at += 4L * a.length;
    }
    int result = start.call(made.block, made.block + HEAD);
    if (result != 0) {
      HostMemory.free(made.block, made.bytes);
      made.done = true;
    } else {
      int unused = UNDER_WAY.incrementAndGet();
    }
    MpiCalls.check(function, result);
    return made;
  }

  @Override
  public boolean isDone() {
    if (done) {
      return true;
    }
    int result;
    synchronized (this) {
      if (done) {
        return true;
      }
      result = Mpi.MPI_Test(block, block + 8, statusIgnore);
      if (result == 0 && Memory.getInt(block + 8) == 0) {
        return false;
      }
      done = true;
      HostMemory.free(block, bytes);
      int unused = UNDER_WAY.decrementAndGet();
    }
    MpiCalls.check(function, result);
    return true;
  }
}
