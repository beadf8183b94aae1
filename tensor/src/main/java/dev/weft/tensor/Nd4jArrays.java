package dev.weft.tensor;

import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.cuda.CudaCopies;
import dev.weft.tensor.op.Casts;
import java.lang.ref.Cleaner;
import org.bytedeco.javacpp.BooleanPointer;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.DoublePointer;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.ShortPointer;
import org.nd4j.linalg.api.buffer.DataBuffer;
import org.nd4j.linalg.api.buffer.DataType;
import org.nd4j.linalg.api.ndarray.INDArray;
import org.nd4j.linalg.factory.Nd4j;

/** Tensors over ND4J arrays and back. The only class that needs ND4J; loaded when first used. */
final class Nd4jArrays {
  private static final Cleaner CLEANER = Cleaner.create();

  private Nd4jArrays() {}

  /** A tensor over the array's memory with its strides. */
  static StridedTensor adopt(INDArray array) {
    DType dtype = dtype(array.dataType());
    long[] shape = array.shape().clone();
    if (array.isEmpty() || Shapes.numel(shape) == 0) {
      return Tensors.empty(dtype, shape);
    }
    long[] strides = array.stride().clone();
    long last = 0;
    for (int d = 0; d < shape.length; d++) {
      // A dimension of one element has any stride in ND4J; keep it plausible.
      strides[d] = shape[d] == 1 ? 1 : strides[d];
      last += (shape[d] - 1) * strides[d];
    }
    // addressPointer() is that of the view's first element; pointer() would be the buffer's.
    long address = array.data().addressPointer().address();
    HostStorage storage = HostStorage.borrow(address, (last + 1) * dtype.byteSize(), array);
    return new StridedTensor(storage, dtype, shape, strides, 0);
  }

  /** An array over the memory of a CPU tensor, or over a copy where ND4J has no such layout. */
  static INDArray array(StridedTensor tensor) {
    if (tensor.device().isCuda()) {
      return array(CudaCopies.to(tensor, Device.CPU));
    }
    if (tensor.device().isMeta()) {
      throw new IllegalArgumentException("toNd4j: a meta tensor has no values");
    }
    DataType type = type(tensor.dtype());
    long[] shape = tensor.shape().clone();
    if (tensor.numel() == 0) {
      return Nd4j.create(type, shape);
    }
    StridedTensor t = tensor;
    Storage made = null;
    for (int d = 0; d < shape.length; d++) {
      if (shape[d] > 1 && tensor.strides()[d] == 0) {
        StridedTensor copy =
            TensorScope.outside(() -> Autograd.noGrad(() -> (StridedTensor) Casts.copy(tensor)));
        t = copy;
        made = copy.storage();
        break;
      }
    }
    long address = t.dataAddress();
    long last = 0;
    for (int d = 0; d < shape.length; d++) {
      last += (shape[d] - 1) * t.strides()[d];
    }
    DataBuffer buffer = Nd4j.createBuffer(pointer(t.dtype(), address, last + 1), last + 1, type);
    INDArray array =
        shape.length == 0
            ? Nd4j.create(buffer, new long[0], new long[0], 0, 'c', type)
            : Nd4j.create(buffer, shape, t.strides().clone(), 0, 'c', type);
    // The memory lives as long as the buffer, which all views of the array share.
    Storage storage = made == null ? t.storage().retain() : made;
    Cleaner.Cleanable unused = CLEANER.register(buffer, storage::release);
    return array;
  }

  private static Pointer pointer(DType dtype, long address, long n) {
    Pointer p =
        switch (dtype) {
          case FLOAT64 -> new DoublePointer(new Address(address));
          case FLOAT32 -> new FloatPointer(new Address(address));
          case FLOAT16, BFLOAT16, INT16 -> new ShortPointer(new Address(address));
          case INT64 -> new LongPointer(new Address(address));
          case INT32 -> new IntPointer(new Address(address));
          case INT8, UINT8 -> new BytePointer(new Address(address));
          case BOOL -> new BooleanPointer(new Address(address));
        };
    return p.capacity(n).limit(n);
  }

  private static final class Address extends Pointer {
    private static final long serialVersionUID = 1;

    Address(long where) {
      super((Pointer) null);
      address = where;
    }
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
              "array has data type "
                  + type
                  + "; expected DOUBLE, FLOAT, HALF, BFLOAT16, LONG, INT, SHORT, BYTE, UBYTE or"
                  + " BOOL");
    };
  }

  private static DataType type(DType dtype) {
    return switch (dtype) {
      case FLOAT64 -> DataType.DOUBLE;
      case FLOAT32 -> DataType.FLOAT;
      case FLOAT16 -> DataType.FLOAT16;
      case BFLOAT16 -> DataType.BFLOAT16;
      case INT64 -> DataType.INT64;
      case INT32 -> DataType.INT32;
      case INT16 -> DataType.INT16;
      case INT8 -> DataType.INT8;
      case UINT8 -> DataType.UINT8;
      case BOOL -> DataType.BOOL;
    };
  }
}
