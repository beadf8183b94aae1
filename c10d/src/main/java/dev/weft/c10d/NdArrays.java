package dev.weft.c10d;

import dev.weft.tensor.DType;
import dev.weft.tensor.HostStorage;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.nd4j.linalg.api.buffer.DataType;
import org.nd4j.linalg.api.ndarray.INDArray;

/** ND4J arrays as tensors over the same memory, with their order and strides. Stateless. */
final class NdArrays {
  private NdArrays() {}

  static Tensor tensor(INDArray array) {
    DType dtype = dtype(array.dataType());
    long[] shape = array.shape().clone();
    if (array.isEmpty() || array.length() == 0) {
      return Tensors.empty(dtype, shape);
    }
    long[] strides = array.stride().clone();
    if (strides.length != shape.length) {
      strides = new long[shape.length];
    }
    long last = 0;
    for (int i = 0; i < shape.length; i++) {
      if (shape[i] == 1) {
        strides[i] = 1;
      }
      last += (shape[i] - 1) * strides[i];
    }
    // addressPointer() is the first element's, also for views; pointer() is the buffer's base.
    long address = array.data().addressPointer().address();
    HostStorage storage = HostStorage.borrow(address, (last + 1) * dtype.byteSize(), array);
    return new StridedTensor(storage, dtype, shape, strides, 0);
  }

  /** Tensors of a list of tensors or arrays. */
  static List<Tensor> tensors(List<?> all) {
    List<Tensor> out = new ArrayList<>(all.size());
    for (Object o : all) {
      if (o instanceof Tensor t) {
        out.add(t);
      } else if (o instanceof INDArray a) {
        out.add(tensor(a));
      } else {
        throw new IllegalArgumentException(
            "list element "
                + out.size()
                + " is "
                + (o == null ? "null" : o.getClass().getName())
                + "; expected a Tensor or an INDArray");
      }
    }
    return out;
  }

  static @Nullable List<Tensor> tensorsOrNull(@Nullable List<?> all) {
    return all == null ? null : tensors(all);
  }

  private static DType dtype(DataType type) {
    return switch (type) {
      case DOUBLE -> DType.FLOAT64;
      case FLOAT -> DType.FLOAT32;
      case HALF -> DType.FLOAT16;
      case BFLOAT16 -> DType.BFLOAT16;
      case LONG -> DType.INT64;
      case INT -> DType.INT32;
      case SHORT -> DType.INT16;
      case BYTE -> DType.INT8;
      case UBYTE -> DType.UINT8;
      case BOOL -> DType.BOOL;
      default ->
          throw new IllegalArgumentException(
              "an INDArray of type " + type + " has no dtype here; cast it first");
    };
  }
}
