package dev.weft.tensor;

/** A storage without memory, for tensors that only have a shape. */
final class MetaStorage extends Storage {
  MetaStorage(long byteSize) {
    super(Device.META, byteSize);
  }

  @Override
  protected long baseAddress() {
    throw new IllegalStateException("a tensor on device meta has no data");
  }

  @Override
  protected void free() {}
}
