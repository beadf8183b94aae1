package dev.weft.parallel;

import dev.weft.tensor.Device;
import dev.weft.tensor.Storage;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.TensorScope;
import org.jspecify.annotations.Nullable;

/**
 * The memory of a whole parameter, which is there only while the parameter is gathered. What
 * autograd saved of it in forward finds it again in backward. Used by the thread that acts for the
 * rank.
 */
final class UnshardedStorage extends Storage {
  private final String name;
  private @Nullable StridedTensor memory;

  private UnshardedStorage(String name, Device device, long bytes) {
    super(device, bytes);
    this.name = name;
  }

  /** One that no scope owns. */
  static UnshardedStorage of(String name, Device device, long bytes) {
    return TensorScope.outside(() -> new UnshardedStorage(name, device, bytes));
  }

  /** Takes over memory. */
  void fill(StridedTensor filled) {
    drop();
    memory = filled;
  }

  void drop() {
    if (memory != null) {
      memory.close();
      memory = null;
    }
  }

  boolean isFilled() {
    return memory != null;
  }

  @Override
  protected long baseAddress() {
    StridedTensor m = memory;
    if (m == null) {
      throw new IllegalStateException(
          "parameter '"
              + name
              + "' is sharded at this moment; its whole value can be read only inside the forward"
              + " and backward of its module");
    }
    return m.dataAddress();
  }

  @Override
  protected void free() {
    drop();
  }
}
