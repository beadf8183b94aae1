package dev.weft.tensor;

import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Casts;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A plain tensor: a shape and strides over a storage. The object is immutable and may be shared;
 * its data follows the storage's rules ({@link Storage}).
 */
public class StridedTensor extends Tensor {
  private final Storage storage;
  private final DType dtype;
  private final long[] shape;
  private final long[] strides;
  private final long offset;
  private final boolean contiguous;

  /**
   * A tensor over a storage.
   *
   * @param shape sizes
   * @param strides in elements
   * @param offset of the first element, in elements
   */
  public StridedTensor(Storage storage, DType dtype, long[] shape, long[] strides, long offset) {
    this.storage = storage;
    this.dtype = dtype;
    this.shape = shape;
    this.strides = strides;
    this.offset = offset;
    this.contiguous = Shapes.isContiguous(shape, strides);
    long last = offset;
    boolean empty = false;
    for (int i = 0; i < shape.length; i++) {
      empty |= shape[i] == 0;
      last += (shape[i] - 1) * strides[i];
      if (strides[i] < 0) {
        throw new IllegalArgumentException(
            "strides " + Arrays.toString(strides) + " must not be negative");
      }
    }
    if (!empty && (offset < 0 || (last + 1) * dtype.byteSize() > storage.byteSize())) {
      throw new IllegalArgumentException(
          "a tensor of shape "
              + Arrays.toString(shape)
              + ", strides "
              + Arrays.toString(strides)
              + " and offset "
              + offset
              + " reaches outside its storage of "
              + storage.byteSize()
              + " bytes");
    }
  }

  @Override
  public final long[] shape() {
    return shape;
  }

  @Override
  public final DType dtype() {
    return dtype;
  }

  @Override
  public final Device device() {
    return storage.device();
  }

  @Override
  public final @Nullable TensorKind kind() {
    return null;
  }

  @Override
  public final List<Storage> storages() {
    return List.of(storage);
  }

  @Override
  public StridedTensor plain() {
    return this;
  }

  @Override
  public StridedTensor alias() {
    return withLayout(shape, strides, offset);
  }

  @Override
  public StridedTensor ownedCopy() {
    return TensorScope.outside(() -> Autograd.noGrad(() -> (StridedTensor) Casts.copy(this)));
  }

  @Override
  protected final boolean isDense() {
    return contiguous;
  }

  /** Strides in elements; do not change the array. */
  public final long[] strides() {
    return strides;
  }

  /** Position of the first element in the storage, in elements. */
  public final long offset() {
    return offset;
  }

  /** The memory. */
  public final Storage storage() {
    return storage;
  }

  /** True when elements lie in row-major order without gaps. */
  @Override
  public final boolean isContiguous() {
    return contiguous;
  }

  /** The address of the first element, past the gate: pending data has arrived. */
  public final long dataAddress() {
    return storage.address() + offset * dtype.byteSize();
  }

  /** The address of the first element without waiting, for the work that fills the storage. */
  public final long rawAddress() {
    return storage.rawAddress() + offset * dtype.byteSize();
  }

  /** A tensor over the same storage with another layout; not recorded by autograd. */
  public final StridedTensor withLayout(long[] shape, long[] strides, long offset) {
    return new StridedTensor(storage, dtype, shape, strides, offset);
  }
}
