package dev.weft.tensor.cuda;

/** What the caching allocator of a device holds. Thread-safe. */
public final class CudaMemory {
  private CudaMemory() {}

  /**
   * A snapshot of the counters of one device; bytes but for the counts.
   *
   * @param allocatedBytes in live storages, rounded up to 512 B each
   * @param peakAllocatedBytes the most that was
   * @param reservedBytes taken from CUDA
   * @param peakReservedBytes the most that was
   * @param blocks live storages
   * @param requests allocations so far
   * @param segments pieces of memory taken from CUDA and not given back
   * @param retries how often memory had to be looked for after CUDA had refused
   */
  public record Stats(
      long allocatedBytes,
      long peakAllocatedBytes,
      long reservedBytes,
      long peakReservedBytes,
      long blocks,
      long requests,
      long segments,
      long retries) {
    @Override
    public String toString() {
      return allocatedBytes
          + " B allocated in "
          + blocks
          + " blocks (peak "
          + peakAllocatedBytes
          + " B), "
          + reservedBytes
          + " B reserved in "
          + segments
          + " segments (peak "
          + peakReservedBytes
          + " B)";
    }
  }

  /** The counters of a device now. */
  public static Stats stats(int device) {
    return CachingAllocator.of(device).stats();
  }

  /** Lets the peaks begin anew from what is held now. */
  public static void resetPeak(int device) {
    CachingAllocator.of(device).resetPeak();
  }

  /** Gives memory that no storage uses back to CUDA, after waiting for what still uses it. */
  public static void emptyCache(int device) {
    CachingAllocator.of(device).emptyCache();
  }
}
