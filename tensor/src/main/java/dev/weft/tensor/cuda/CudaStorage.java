package dev.weft.tensor.cuda;

import dev.weft.tensor.Device;
import dev.weft.tensor.Storage;
import dev.weft.tensor.memory.StorageCleaner;

/**
 * A storage in a device's memory, from the caching allocator. It belongs to the stream that was
 * current when it was made: freed, its memory goes to later work of that stream at once. Work of
 * another stream that uses it must be told of by {@link #recordStream}, or be known to be done.
 */
public final class CudaStorage extends Storage {
  private final CachingAllocator allocator;
  private final CachingAllocator.Block block;
  private final StorageCleaner.Block guard;

  private CudaStorage(
      Device device, long bytes, CachingAllocator allocator, CachingAllocator.Block block) {
    super(device, bytes);
    this.allocator = allocator;
    this.block = block;
    this.guard = StorageCleaner.register(this, () -> allocator.free(block));
  }

  /** Allocates {@code bytes} of arbitrary content for the device's current stream. */
  public static CudaStorage allocate(Device device, long bytes) {
    CachingAllocator allocator = CachingAllocator.of(device.index());
    CudaStream stream = CudaThread.bind(device.index()).stream(device.index());
    return new CudaStorage(device, bytes, allocator, allocator.allocate(bytes, stream));
  }

  /** The memory is not given to others, once freed, before what {@code stream} has is done. */
  public void recordStream(CudaStream stream) {
    allocator.recordStream(block, stream);
  }

  /** The stream it was made for. */
  public CudaStream stream() {
    return block.stream();
  }

  @Override
  protected long baseAddress() {
    return block.address();
  }

  @Override
  protected void free() {
    guard.free();
  }
}
