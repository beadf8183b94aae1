package dev.weft.c10d.nccl;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Regions;
import dev.weft.tensor.Storage;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.cuda.CudaStream;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Row-major device memory for the tensors of one operation: their own where they lie so, copies
 * where they do not. Inputs are copied on the current stream, outputs on the operation's. Used by
 * one thread.
 */
final class Staging {
  private record Late(StridedTensor from, StridedTensor to) {}

  private @Nullable List<StridedTensor> copies;
  private @Nullable List<Late> late;

  /** Elements to read. */
  long in(StridedTensor t) {
    return t.isContiguous() ? t.rawAddress() : copy(t);
  }

  /** Elements to read, apart from the tensor's own memory. */
  long copy(StridedTensor t) {
    StridedTensor c = block(t.dtype(), t.device(), t.shape());
    Regions.copy(t, c);
    return c.rawAddress();
  }

  /** Memory for new elements, which are not what is there before. */
  long out(StridedTensor t) {
    if (t.isContiguous()) {
      return t.rawAddress();
    }
    StridedTensor c = block(t.dtype(), t.device(), t.shape());
    afterwards(c, t);
    return c.rawAddress();
  }

  /** Elements to read and replace. */
  long inOut(StridedTensor t) {
    if (t.isContiguous()) {
      return t.rawAddress();
    }
    StridedTensor c = block(t.dtype(), t.device(), t.shape());
    Regions.copy(t, c);
    afterwards(c, t);
    return c.rawAddress();
  }

  /** Memory for a while. */
  StridedTensor block(DType dtype, Device device, long... shape) {
    StridedTensor c = TensorScope.outside(() -> Tensors.empty(dtype, device, shape));
    if (copies == null) {
      copies = new ArrayList<>(2);
    }
    copies.add(c);
    return c;
  }

  /** Has values copied when the operation is done. */
  void afterwards(StridedTensor from, StridedTensor to) {
    if (late == null) {
      late = new ArrayList<>(2);
    }
    late.add(new Late(from, to));
  }

  /** Copies the new elements to the tensors that were staged, on the operation's stream. */
  void finish(CudaStream stream) {
    if (late == null) {
      return;
    }
    try (CudaStream.InUse unused = stream.use()) {
      for (Late l : late) {
        Regions.copy(l.from(), l.to());
      }
    }
  }

  int count() {
    return copies == null ? 0 : copies.size();
  }

  Storage storage(int i) {
    if (copies == null) {
      throw new IndexOutOfBoundsException(i);
    }
    return copies.get(i).storage();
  }

  /** Takes what another one has to free and to copy; that one is empty then. */
  void takeOver(Staging other) {
    if (other.copies != null) {
      if (copies == null) {
        copies = new ArrayList<>(2);
      }
      copies.addAll(other.copies);
      other.copies = null;
    }
    if (other.late != null) {
      other.late.forEach(l -> afterwards(l.from(), l.to()));
      other.late = null;
    }
  }

  /** Drops the staged memory; a work under way retains it itself. */
  void close() {
    if (copies != null) {
      copies.forEach(c -> c.storage().release());
      copies = null;
    }
  }
}
