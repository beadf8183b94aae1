package dev.weft.c10d;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.cpu.Elements;
import java.util.Arrays;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * A sparse tensor in coordinate form, as PyTorch's {@code sparse_coo}: the elements that are not
 * named are zero, values of one coordinate add up. Immutable but for the data of its two tensors;
 * both are plain CPU tensors.
 *
 * @param indices int64 of shape [sparse dimensions, entries]: a coordinate in each column
 * @param values of shape [entries, sizes of the dense dimensions...]
 * @param shape sparse dimensions, then dense ones
 */
public record SparseCoo(Tensor indices, Tensor values, long[] shape) {
  /** Checks that the three fit together, and copies the shape. */
  public SparseCoo {
    shape = shape.clone();
    if (indices.dtype() != DType.INT64 || indices.ndim() != 2) {
      throw new IllegalArgumentException(
          "indices is " + indices.describe() + "; expected int64 of two dimensions");
    }
    int sparse = (int) indices.shape()[0];
    long entries = indices.shape()[1];
    boolean fits = values.ndim() == 1 + shape.length - sparse && values.shape()[0] == entries;
    for (int d = 1; fits && d < values.ndim(); d++) {
      fits = values.shape()[d] == shape[sparse + d - 1];
    }
    if (!fits) {
      throw new IllegalArgumentException(
          "values is "
              + values.describe()
              + "; expected one for each of the "
              + entries
              + " coordinates of "
              + sparse
              + " dimensions of shape "
              + Arrays.toString(shape));
    }
    long[] all = indices.toLongArray();
    for (int i = 0; i < all.length; i++) {
      int d = (int) (i / entries);
      if (all[i] < 0 || all[i] >= shape[d]) {
        throw new IllegalArgumentException(
            "indices has "
                + all[i]
                + " in dimension "
                + d
                + "; expected 0 to "
                + (shape[d] - 1)
                + " of shape "
                + Arrays.toString(shape));
      }
    }
  }

  /** A copy of the shape. */
  @Override
  public long[] shape() {
    return shape.clone();
  }

  /** The number of dimensions that coordinates have. */
  public int sparseDims() {
    return (int) indices.shape()[0];
  }

  /** The number of coordinates, double ones counted twice. */
  public long entries() {
    return indices.shape()[1];
  }

  /** The element type. */
  public DType dtype() {
    return values.dtype();
  }

  /** The same with each coordinate once, in row-major order. */
  public SparseCoo coalesce() {
    Summing sum = new Summing(this);
    sum.add(this);
    return sum.result();
  }

  @Override
  public boolean equals(@Nullable Object o) {
    return o instanceof SparseCoo s
        && s.indices == indices
        && s.values == values
        && Arrays.equals(s.shape, shape);
  }

  @Override
  public int hashCode() {
    return 31 * indices.hashCode() + values.hashCode();
  }

  @Override
  public String toString() {
    return "SparseCoo("
        + dtype()
        + Arrays.toString(shape)
        + ", "
        + entries()
        + " entries of "
        + sparseDims()
        + " sparse dimensions)";
  }

  /**
   * The sum of sparse tensors of one shape and dtype. Floating-point numbers are added in float64
   * and rounded once.
   */
  static final class Summing {
    private final SparseCoo like;
    private final int block;
    private final boolean floating;
    private final TreeMap<Long, double[]> numbers = new TreeMap<>();
    private final TreeMap<Long, long[]> integers = new TreeMap<>();

    Summing(SparseCoo like) {
      this.like = like;
      this.floating = like.dtype().isFloatingPoint();
      long n = 1;
      for (int d = like.sparseDims(); d < like.shape.length; d++) {
        n *= like.shape[d];
      }
      this.block = Math.toIntExact(n);
    }

    void add(SparseCoo more) {
      add(more.indices.toLongArray(), more.values);
    }

    /** Adds entries: coordinates by dimension, then by entry. */
    void add(long[] coordinates, Tensor values) {
      int entries = Math.toIntExact(values.shape()[0]);
      double[] doubles = floating ? values.toDoubleArray() : new double[0];
      long[] longs = floating ? new long[0] : values.toLongArray();
      for (int e = 0; e < entries; e++) {
        long key = 0;
        for (int d = 0; d < like.sparseDims(); d++) {
          key = key * like.shape[d] + coordinates[d * entries + e];
        }
        if (floating) {
          double[] sum = numbers.computeIfAbsent(key, k -> new double[block]);
          for (int i = 0; i < block; i++) {
            sum[i] += doubles[e * block + i];
          }
        } else {
          long[] sum = integers.computeIfAbsent(key, k -> new long[block]);
          for (int i = 0; i < block; i++) {
            sum[i] += longs[e * block + i];
          }
        }
      }
    }

    SparseCoo result() {
      Set<Long> keys = floating ? numbers.keySet() : integers.keySet();
      int dims = like.sparseDims();
      int entries = keys.size();
      long[] valueShape = like.values.shape().clone();
      valueShape[0] = entries;
      StridedTensor indices = Tensors.empty(DType.INT64, dims, entries);
      StridedTensor values = Tensors.empty(like.dtype(), valueShape);
      int e = 0;
      for (long key : keys) {
        long rest = key;
        for (int d = dims - 1; d >= 0; d--) {
          long at = indices.dataAddress() + 8L * ((long) d * entries + e);
          Elements.putLong(DType.INT64, at, rest % like.shape[d]);
          rest /= like.shape[d];
        }
        put(key, values.dataAddress() + (long) e * block * like.dtype().byteSize());
        e++;
      }
      return new SparseCoo(indices, values, like.shape);
    }

    private void put(long key, long address) {
      DType dtype = like.dtype();
      for (int i = 0; i < block; i++) {
        long at = address + (long) i * dtype.byteSize();
        if (floating) {
          Elements.putDouble(dtype, at, Objects.requireNonNull(numbers.get(key))[i]);
        } else {
          Elements.putLong(dtype, at, Objects.requireNonNull(integers.get(key))[i]);
        }
      }
    }
  }
}
