package dev.weft.c10d.nccl;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import org.bytedeco.cuda.global.nccl;

/** NCCL's numbers for dtypes and reductions. Stateless. */
final class NcclTypes {
  private NcclTypes() {}

  /** For moving elements: int16, which NCCL does not know, travels as bytes. */
  static int moved(DType dtype) {
    return dtype == DType.INT16 ? nccl.ncclInt8 : number(dtype);
  }

  /** How many of {@link #moved} make {@code elements}. */
  static long movedCount(DType dtype, long elements) {
    return dtype == DType.INT16 ? 2 * elements : elements;
  }

  /** For reductions. */
  static int reduced(String operation, DType dtype) {
    if (dtype == DType.INT16) {
      throw new IllegalArgumentException(
          operation
              + ": dtype int16 cannot be reduced by the nccl backend; expected float64, float32,"
              + " float16, bfloat16, int64, int32, int8, uint8 or bool");
    }
    return number(dtype);
  }

  private static int number(DType dtype) {
    return switch (dtype) {
      case FLOAT64 -> nccl.ncclFloat64;
      case FLOAT32 -> nccl.ncclFloat32;
      case FLOAT16 -> nccl.ncclFloat16;
      case BFLOAT16 -> nccl.ncclBfloat16;
      case INT64 -> nccl.ncclInt64;
      case INT32 -> nccl.ncclInt32;
      case INT8 -> nccl.ncclInt8;
      case UINT8, BOOL -> nccl.ncclUint8;
      case INT16 -> throw new IllegalArgumentException("NCCL does not know int16");
    };
  }

  /** The reduction, but for pre-multiplied sums, which are made for a communicator. */
  static int reduction(String operation, ReduceOp op, DType dtype) {
    boolean truth = dtype == DType.BOOL;
    return switch (op.kind()) {
      // One byte a truth value: the largest is "or", the smallest "and".
      case SUM -> truth ? nccl.ncclMax : nccl.ncclSum;
      case PRODUCT -> truth ? nccl.ncclMin : nccl.ncclProd;
      case MIN -> nccl.ncclMin;
      case MAX -> nccl.ncclMax;
      case AVG -> nccl.ncclAvg;
      case BAND, BOR, BXOR, PREMUL_SUM ->
          throw new IllegalArgumentException(
              operation
                  + ": reduce op "
                  + op
                  + " cannot be used with the nccl backend; expected sum, avg, product, min, max or"
                  + " a pre-multiplied sum");
    };
  }
}
