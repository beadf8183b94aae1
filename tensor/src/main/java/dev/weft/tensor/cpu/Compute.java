package dev.weft.tensor.cpu;

import dev.weft.tensor.DType;

/** The Java type that a kernel computes in. */
enum Compute {
  /** For float32, and for float16 and bfloat16, which are widened and rounded once. */
  FLOAT,
  /** For float64. */
  DOUBLE,
  /** For integers, which wrap to their width when written, and bool. */
  LONG;

  /** The type for results of a dtype. */
  static Compute of(DType dtype) {
    return dtype == DType.FLOAT64 ? DOUBLE : dtype.isFloatingPoint() ? FLOAT : LONG;
  }
}
