package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.Tensor;
import java.util.Arrays;

/** Checks of arguments, with messages that name the operator. Stateless. */
final class Check {
  private Check() {}

  static IllegalArgumentException bad(String op, String message) {
    return new IllegalArgumentException(op + ": " + message);
  }

  /** Normalises a dimension. */
  static int dim(String op, int dim, int ndim) {
    try {
      return Shapes.dim(dim, ndim);
    } catch (IndexOutOfBoundsException e) {
      throw (IndexOutOfBoundsException)
          new IndexOutOfBoundsException(
                  op + ": " + e.getMessage() + " for a tensor of " + ndim + " dimensions")
              .initCause(e);
    }
  }

  /** Normalises a list of dimensions; null or empty means all. */
  static int[] dims(String op, int @org.jspecify.annotations.Nullable [] dims, int ndim) {
    try {
      return Shapes.dims(dims == null ? new int[0] : dims, ndim);
    } catch (IndexOutOfBoundsException e) {
      throw (IndexOutOfBoundsException)
          new IndexOutOfBoundsException(
                  op + ": " + e.getMessage() + " for a tensor of " + ndim + " dimensions")
              .initCause(e);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(op + ": " + e.getMessage(), e);
    }
  }

  /** The common shape of tensors that broadcast. */
  static long[] broadcast(String op, Tensor... tensors) {
    long[] shape = tensors[0].shape();
    try {
      for (int i = 1; i < tensors.length; i++) {
        shape = Shapes.broadcast(shape, tensors[i].shape());
      }
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(op + ": " + e.getMessage(), e);
    }
    return shape;
  }

  static void sameShape(String op, String argument, Tensor t, long[] expected) {
    if (!Arrays.equals(t.shape(), expected)) {
      throw bad(
          op,
          argument
              + " has shape "
              + Arrays.toString(t.shape())
              + "; expected "
              + Arrays.toString(expected));
    }
  }

  static void ndim(String op, String argument, Tensor t, int expected) {
    if (t.ndim() != expected) {
      throw bad(
          op,
          argument
              + " has shape "
              + Arrays.toString(t.shape())
              + "; expected "
              + expected
              + (expected == 1 ? " dimension" : " dimensions"));
    }
  }

  static void floating(String op, String argument, Tensor t) {
    if (!t.dtype().isFloatingPoint()) {
      throw bad(op, argument + " has dtype " + t.dtype() + "; expected a floating-point one");
    }
  }

  static void integral(String op, String argument, Tensor t) {
    if (!t.dtype().isIntegral()) {
      throw bad(op, argument + " has dtype " + t.dtype() + "; expected int64 or int32");
    }
  }

  static void bool(String op, String argument, Tensor t) {
    if (t.dtype() != DType.BOOL) {
      throw bad(op, argument + " has dtype " + t.dtype() + "; expected bool");
    }
  }

  static void numbers(String op, String argument, Tensor t) {
    if (t.dtype() == DType.BOOL) {
      throw bad(op, argument + " has dtype bool; expected numbers");
    }
  }

  static void sameDType(String op, Tensor... tensors) {
    for (Tensor t : tensors) {
      if (t.dtype() != tensors[0].dtype()) {
        throw bad(
            op,
            "tensors have dtypes "
                + tensors[0].dtype()
                + " and "
                + t.dtype()
                + "; expected the same, convert one with to()");
      }
    }
  }

  /** Refuses an in-place result of a higher category than its target. */
  static void castable(String op, DType result, DType target) {
    if (result.category().compareTo(target.category()) > 0) {
      throw bad(op, "the result is " + result + " and cannot be written into a " + target);
    }
  }
}
