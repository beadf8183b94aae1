package dev.weft.tensor;

import dev.weft.tensor.cuda.CudaStorage;

/** Allocation of plain tensors whose content is set by the caller. Thread-safe. */
public final class Tensors {
  private Tensors() {}

  /** A contiguous tensor of arbitrary content. */
  public static StridedTensor empty(DType dtype, Device device, long... shape) {
    long bytes = Math.multiplyExact(Shapes.numel(Shapes.check(shape)), dtype.byteSize());
    Storage storage =
        device.isCpu()
            ? HostStorage.allocate(bytes)
            : device.isMeta() ? new MetaStorage(bytes) : CudaStorage.allocate(device, bytes);
    return new StridedTensor(storage, dtype, shape, Shapes.contiguousStrides(shape), 0);
  }

  /** A contiguous CPU tensor of arbitrary content. */
  public static StridedTensor empty(DType dtype, long... shape) {
    return empty(dtype, Device.CPU, shape);
  }
}
