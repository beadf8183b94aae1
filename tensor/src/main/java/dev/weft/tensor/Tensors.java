package dev.weft.tensor;

/** Allocation of plain tensors whose content is set by the caller. Thread-safe. */
public final class Tensors {
  private Tensors() {}

  /** How a device type allocates; CUDA adds itself here. */
  @FunctionalInterface
  public interface Allocator {
    /** Allocates {@code bytes} of arbitrary content on a device. */
    Storage allocate(Device device, long bytes);
  }

  private static volatile Allocator cudaAllocator =
      (device, bytes) -> {
        throw new UnsupportedOperationException(
            "no CUDA runtime is loaded, so nothing can be allocated on " + device);
      };

  /** Installs the allocator of CUDA devices. */
  public static void cudaAllocator(Allocator allocator) {
    cudaAllocator = allocator;
  }

  /** A contiguous tensor of arbitrary content. */
  public static StridedTensor empty(DType dtype, Device device, long... shape) {
    long bytes = Math.multiplyExact(Shapes.numel(Shapes.check(shape)), dtype.byteSize());
    Storage storage =
        device.isCpu()
            ? HostStorage.allocate(bytes)
            : device.isMeta() ? new MetaStorage(bytes) : cudaAllocator.allocate(device, bytes);
    return new StridedTensor(storage, dtype, shape, Shapes.contiguousStrides(shape), 0);
  }

  /** A contiguous CPU tensor of arbitrary content. */
  public static StridedTensor empty(DType dtype, long... shape) {
    return empty(dtype, Device.CPU, shape);
  }
}
