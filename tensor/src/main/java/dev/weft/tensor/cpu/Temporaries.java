package dev.weft.tensor.cpu;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Tensors that a kernel needs while it runs; they belong to no scope and end with it. */
final class Temporaries implements AutoCloseable {
  private @Nullable List<StridedTensor> made;

  /** A contiguous tensor of arbitrary content. */
  StridedTensor empty(DType dtype, long... shape) {
    StridedTensor t = TensorScope.outside(() -> Tensors.empty(dtype, shape));
    if (made == null) {
      made = new ArrayList<>();
    }
    made.add(t);
    return t;
  }

  /** A contiguous copy of a dtype. */
  StridedTensor packed(StridedTensor t, DType dtype) {
    StridedTensor copy = empty(dtype, t.shape());
    CopyKernels.copy(t, copy);
    return copy;
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
