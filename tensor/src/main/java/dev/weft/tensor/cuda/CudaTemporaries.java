package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Device memory that an operator needs while its kernels run. It belongs to no scope and is given
 * back when this is closed; the caching allocator hands it on in the order of the stream.
 */
final class CudaTemporaries implements AutoCloseable {
  private final Device device;
  private @Nullable List<StridedTensor> made;

  CudaTemporaries(Device device) {
    this.device = device;
  }

  /** A contiguous tensor of arbitrary content. */
  StridedTensor empty(DType dtype, long... shape) {
    StridedTensor t = TensorScope.outside(() -> Tensors.empty(dtype, device, shape));
    if (made == null) {
      made = new ArrayList<>();
    }
    made.add(t);
    return t;
  }

  /** Memory of a size in bytes. */
  StridedTensor bytes(long bytes) {
    return empty(DType.UINT8, bytes);
  }

  /** A contiguous copy of a dtype. */
  StridedTensor packed(StridedTensor t, DType dtype) {
    StridedTensor copy = empty(dtype, t.shape());
    CudaCopies.copy(t, copy);
    return copy;
  }

  /** The tensor itself where it is of the dtype, else a contiguous copy that is. */
  StridedTensor as(StridedTensor t, DType dtype) {
    return t.dtype() == dtype ? t : packed(t, dtype);
  }

  /** The tensor itself where it is contiguous, else a contiguous copy. */
  StridedTensor contiguous(StridedTensor t) {
    return t.isContiguous() ? t : packed(t, t.dtype());
  }

  /** The tensor itself where it is contiguous and of the dtype, else a copy that is. */
  StridedTensor contiguous(StridedTensor t, DType dtype) {
    return t.isContiguous() && t.dtype() == dtype ? t : packed(t, dtype);
  }

  @Override
  public void close() {
    if (made != null) {
      for (StridedTensor t : made) {
        t.storage().release();
      }
      made = null;
    }
  }
}
