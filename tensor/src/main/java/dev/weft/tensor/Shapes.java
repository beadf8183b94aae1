package dev.weft.tensor;

import java.util.Arrays;

/** Arithmetic of shapes, strides and dimension indices. Stateless. */
public final class Shapes {
  private Shapes() {}

  /** The number of elements: the product, 1 for no dimensions. */
  public static long numel(long... shape) {
    long n = 1;
    for (long s : shape) {
      n = Math.multiplyExact(n, s);
    }
    return n;
  }

  /** Row-major strides in elements; dimensions of size 0 count as 1, as in PyTorch. */
  public static long[] contiguousStrides(long... shape) {
    long[] strides = new long[shape.length];
    long step = 1;
    for (int i = shape.length - 1; i >= 0; i--) {
      strides[i] = step;
      step *= Math.max(shape[i], 1);
    }
    return strides;
  }

  /** True when elements lie in row-major order without gaps. */
  public static boolean isContiguous(long[] shape, long[] strides) {
    long step = 1;
    for (int i = shape.length - 1; i >= 0; i--) {
      if (shape[i] == 0) {
        return true;
      }
      if (shape[i] != 1) {
        if (strides[i] != step) {
          return false;
        }
        step *= shape[i];
      }
    }
    return true;
  }

  /**
   * Normalises a dimension index; negative ones count from the end.
   *
   * @throws IndexOutOfBoundsException if it is outside [-ndim, ndim)
   */
  public static int dim(int dim, int ndim) {
    int bound = Math.max(ndim, 1);
    if (dim < -bound || dim >= bound) {
      throw new IndexOutOfBoundsException(
          "dim " + dim + " is out of range; expected [" + -bound + ", " + (bound - 1) + "]");
    }
    return dim < 0 ? dim + bound : dim;
  }

  /** Normalises a list of dimensions and refuses duplicates. An empty list means all. */
  public static int[] dims(int[] dims, int ndim) {
    if (dims.length == 0) {
      int[] all = new int[ndim];
      for (int i = 0; i < ndim; i++) {
        all[i] = i;
      }
      return all;
    }
    int[] out = new int[dims.length];
    boolean[] seen = new boolean[Math.max(ndim, 1)];
    for (int i = 0; i < dims.length; i++) {
      out[i] = dim(dims[i], ndim);
      if (seen[out[i]]) {
        throw new IllegalArgumentException(
            "dims " + Arrays.toString(dims) + " names dimension " + out[i] + " twice");
      }
      seen[out[i]] = true;
    }
    return ndim == 0 ? new int[0] : out;
  }

  /**
   * The shape that two shapes broadcast to.
   *
   * @throws IllegalArgumentException if they do not
   */
  public static long[] broadcast(long[] a, long[] b) {
    if (Arrays.equals(a, b)) {
      return a;
    }
    int n = Math.max(a.length, b.length);
    long[] out = new long[n];
    for (int i = 0; i < n; i++) {
      int ia = i - (n - a.length);
      int ib = i - (n - b.length);
      long sa = ia < 0 ? 1 : a[ia];
      long sb = ib < 0 ? 1 : b[ib];
      if (sa != sb && sa != 1 && sb != 1) {
        throw new IllegalArgumentException(
            "shapes "
                + Arrays.toString(a)
                + " and "
                + Arrays.toString(b)
                + " do not broadcast: sizes "
                + sa
                + " and "
                + sb
                + " differ at dimension "
                + i);
      }
      out[i] = sa == 1 ? sb : sa;
    }
    return out;
  }

  /** Refuses negative sizes, and element counts over 2^63. */
  public static long[] check(long... shape) {
    for (long s : shape) {
      if (s < 0) {
        throw new IllegalArgumentException(
            "shape " + Arrays.toString(shape) + " has a negative size");
      }
    }
    try {
      long unused = numel(shape);
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException(
          "shape " + Arrays.toString(shape) + " has more elements than a 64-bit count holds", e);
    }
    return shape;
  }

  /**
   * Resolves one -1 in a requested shape.
   *
   * @throws IllegalArgumentException if the element counts differ
   */
  public static long[] reshape(long[] from, long... to) {
    long known = 1;
    int hole = -1;
    for (int i = 0; i < to.length; i++) {
      if (to[i] == -1) {
        if (hole >= 0) {
          throw new IllegalArgumentException(
              "shape " + Arrays.toString(to) + " has more than one -1");
        }
        hole = i;
      } else if (to[i] < 0) {
        throw new IllegalArgumentException("shape " + Arrays.toString(to) + " has a negative size");
      } else {
        known *= to[i];
      }
    }
    long n = numel(from);
    long[] out = to.clone();
    if (hole >= 0) {
      if (known == 0) {
        throw new IllegalArgumentException(
            "shape " + Arrays.toString(to) + " is ambiguous: -1 beside a size of 0");
      }
      out[hole] = n / known;
      known *= out[hole];
    }
    if (known != n) {
      throw new IllegalArgumentException(
          "shape "
              + Arrays.toString(to)
              + " is not valid for a tensor of shape "
              + Arrays.toString(from)
              + " ("
              + n
              + " elements)");
    }
    return out;
  }
}
