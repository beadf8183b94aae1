package dev.weft.tensor;

import java.util.Arrays;

/**
 * The shape and dtype of an operator's result. Immutable by convention: do not change the array.
 *
 * @param shape sizes of the dimensions
 * @param dtype element type
 */
public record TensorSpec(long[] shape, DType dtype) {
  /** One result. */
  public static TensorSpec[] one(long[] shape, DType dtype) {
    return new TensorSpec[] {new TensorSpec(shape, dtype)};
  }

  @Override
  public boolean equals(Object o) {
    return o instanceof TensorSpec s && s.dtype == dtype && Arrays.equals(s.shape, shape);
  }

  @Override
  public int hashCode() {
    return 31 * Arrays.hashCode(shape) + dtype.hashCode();
  }

  @Override
  public String toString() {
    return dtype + Arrays.toString(shape);
  }
}
