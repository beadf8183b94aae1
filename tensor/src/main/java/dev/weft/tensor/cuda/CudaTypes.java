package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;

/** The names that {@code common.cuh} gives the dtypes. */
final class CudaTypes {
  private CudaTypes() {}

  /** How many dtypes there are. */
  static final int COUNT = DType.values().length;

  /** A dtype's place in an array of {@link #COUNT}; never kept beyond the process. */
  @SuppressWarnings("EnumOrdinal")
  static int index(DType dtype) {
    return dtype.ordinal();
  }

  static String of(DType dtype) {
    return switch (dtype) {
      case FLOAT64 -> "double";
      case FLOAT32 -> "float";
      case FLOAT16 -> "f16";
      case BFLOAT16 -> "bf16";
      case INT64 -> "i64";
      case INT32 -> "i32";
      case INT16 -> "i16";
      case INT8 -> "i8";
      case UINT8 -> "u8";
      case BOOL -> "b8";
    };
  }

  /** The type that values of a dtype are computed in. */
  static String accumulator(DType dtype) {
    return !dtype.isFloatingPoint() ? "i64" : dtype == DType.FLOAT64 ? "double" : "float";
  }
}
