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
 * Tensors that a kernel needs while it runs; they belong to no scope and go back to the allocator
 * at the end, which hands them out again in the order of the stream.
 */
final class CudaTemporaries implements AutoCloseable {
  private @Nullable List<StridedTensor> made;

  /** A contiguous tensor of arbitrary content. */
  StridedTensor empty(DType dtype, Device device, long... shape) {
    StridedTensor t = TensorScope.outside(() -> Tensors.empty(dtype, device, shape));
    if (made == null) {
      made = new ArrayList<>();
    }
    made.add(t);
    return t;
  }

  /** Memory of a size in bytes. */
  StridedTensor bytes(long bytes, Device device) {
    return empty(DType.UINT8, device, bytes);
  }

  /** A contiguous copy of a dtype. */
  StridedTensor packed(StridedTensor t, DType dtype) {
    StridedTensor copy = empty(dtype, t.device(), t.shape());
    CudaCopies.copy(t, copy);
    return copy;
  }

  /** The tensor itself where it is contiguous, else a copy that is. */
  StridedTensor contiguous(StridedTensor t) {
    return t.isContiguous() ? t : packed(t, t.dtype());
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
