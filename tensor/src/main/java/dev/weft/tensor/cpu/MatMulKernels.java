package dev.weft.tensor.cpu;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.memory.Memory;

/**
 * Matrix products of any layout. float32 and float64 go to OpenBLAS, transposed operands without a
 * copy; float16 and bfloat16 are widened, multiplied in float32 and rounded once; integers are
 * multiplied by a loop that wraps.
 */
public final class MatMulKernels {
  private MatMulKernels() {}

  /** A batch of matrices: an address, two strides within a matrix, batch strides; in elements. */
  private record Operand(long address, long rowStride, long columnStride, long[] batchStrides) {}

  /**
   * c = alpha a b + beta c for a [..., m, k], b [..., k, n], c [..., m, n], where batch dimensions
   * of a and b broadcast to those of c; c is contiguous and all dtypes are equal.
   */
  public static void matmul(
      StridedTensor a, StridedTensor b, StridedTensor c, double alpha, double beta) {
    if (c.numel() == 0) {
      return;
    }
    DType dtype = c.dtype();
    if (a.size(-1) == 0) {
      scale(c, beta);
      return;
    }
    try (Temporaries temporaries = new Temporaries()) {
      if (dtype == DType.FLOAT32 || dtype == DType.FLOAT64) {
        batches(temporaries, layout(temporaries, a), layout(temporaries, b), c, alpha, beta, dtype);
      } else if (dtype.isFloatingPoint()) {
        StridedTensor wide =
            beta == 0
                ? temporaries.empty(DType.FLOAT32, c.shape())
                : temporaries.packed(c, DType.FLOAT32);
        batches(
            temporaries,
            temporaries.packed(a, DType.FLOAT32),
            temporaries.packed(b, DType.FLOAT32),
            wide,
            alpha,
            beta,
            DType.FLOAT32);
        CopyKernels.copy(wide, c);
      } else {
        integers(temporaries, a, b, c, (long) alpha, (long) beta);
      }
    }
  }

  private static void scale(StridedTensor c, double beta) {
    if (beta == 0) {
      FillKernels.fill(c, 0);
    } else if (beta != 1) {
      Elementwise.run(
          ArithmeticLoops.MUL_SCALAR,
          c.dtype(),
          new StridedTensor[] {c},
          c,
          dev.weft.tensor.op.Attrs.of(beta));
    }
  }

  /** The tensor, or a contiguous copy where BLAS cannot read its matrices. */
  private static StridedTensor layout(Temporaries temporaries, StridedTensor t) {
    long rows = t.size(-2);
    long columns = t.size(-1);
    long rowStride = t.strides()[t.ndim() - 2];
    long columnStride = t.strides()[t.ndim() - 1];
    boolean plain =
        (columnStride == 1 || columns == 1) && (rowStride >= Math.max(1, columns) || rows == 1);
    boolean transposed =
        (rowStride == 1 || rows == 1) && (columnStride >= Math.max(1, rows) || columns == 1);
    boolean small = rowStride <= Integer.MAX_VALUE && columnStride <= Integer.MAX_VALUE;
    return small && (plain || transposed) ? t : temporaries.packed(t, t.dtype());
  }

  private static Operand operand(StridedTensor t, StridedTensor c) {
    int n = t.ndim();
    long[] batchShape = java.util.Arrays.copyOf(t.shape(), n - 2);
    long[] strides = java.util.Arrays.copyOf(t.strides(), n - 2);
    long[] to = java.util.Arrays.copyOf(c.shape(), c.ndim() - 2);
    return new Operand(
        t.dataAddress(),
        t.strides()[n - 2],
        t.strides()[n - 1],
        Layouts.broadcast(batchShape, strides, to));
  }

  private static void batches(
      Temporaries temporaries,
      StridedTensor a,
      StridedTensor b,
      StridedTensor c,
      double alpha,
      double beta,
      DType dtype) {
    int m = Math.toIntExact(c.size(-2));
    int n = Math.toIntExact(c.size(-1));
    int k = Math.toIntExact(a.size(-1));
    // A batch of matrices times one matrix is a single product where the rows are evenly spaced.
    if (b.ndim() == 2 && c.ndim() > 2 && a.ndim() == c.ndim()) {
      StridedTensor rows = a.isContiguous() ? a : temporaries.packed(a, dtype);
      long total = c.numel() / n;
      if (total <= Integer.MAX_VALUE) {
        Operand y = operand(b, b);
        gemm(
            dtype,
            (int) total,
            n,
            k,
            alpha,
            rows.dataAddress(),
            k,
            1,
            y.address,
            y.rowStride,
            y.columnStride,
            beta,
            c.dataAddress());
        return;
      }
    }
    Operand x = operand(a, c);
    Operand y = operand(b, c);
    int dims = c.ndim() - 2;
    long count = c.numel() / ((long) m * n);
    long[] index = new long[dims];
    long xAt = x.address;
    long yAt = y.address;
    long zAt = c.dataAddress();
    int width = dtype.byteSize();
    for (long i = 0; i < count; i++) {
      gemm(
          dtype,
          m,
          n,
          k,
          alpha,
          xAt,
          x.rowStride,
          x.columnStride,
          yAt,
          y.rowStride,
          y.columnStride,
          beta,
          zAt);
      zAt += (long) m * n * width;
      for (int d = dims - 1; d >= 0; d--) {
        index[d]++;
        xAt += x.batchStrides[d] * width;
        yAt += y.batchStrides[d] * width;
        if (index[d] < c.shape()[d]) {
          break;
        }
        xAt -= c.shape()[d] * x.batchStrides[d] * width;
        yAt -= c.shape()[d] * y.batchStrides[d] * width;
        index[d] = 0;
      }
    }
  }

  private static void gemm(
      DType dtype,
      int m,
      int n,
      int k,
      double alpha,
      long a,
      long aRow,
      long aColumn,
      long b,
      long bRow,
      long bColumn,
      double beta,
      long c) {
    boolean ta = !isPlain(aRow, aColumn, m, k);
    boolean tb = !isPlain(bRow, bColumn, k, n);
    int lda = (int) (ta ? leading(aColumn, k, m) : leading(aRow, m, k));
    int ldb = (int) (tb ? leading(bColumn, n, k) : leading(bRow, k, n));
    if (dtype == DType.FLOAT32) {
      Blas.get().sgemm(ta, tb, m, n, k, (float) alpha, a, lda, b, ldb, (float) beta, c, n);
    } else {
      Blas.get().dgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, n);
    }
  }

  private static boolean isPlain(long rowStride, long columnStride, int rows, int columns) {
    return (columnStride == 1 || columns == 1) && (rows == 1 || rowStride >= Math.max(1, columns));
  }

  /** The distance of rows; of a single row it does not matter, but BLAS checks it. */
  private static long leading(long stride, int rows, int columns) {
    return rows == 1 ? Math.max(1, columns) : stride;
  }

  private static void integers(
      Temporaries temporaries,
      StridedTensor a,
      StridedTensor b,
      StridedTensor c,
      long alpha,
      long beta) {
    StridedTensor x = temporaries.packed(a, DType.INT64);
    StridedTensor y = temporaries.packed(b, DType.INT64);
    Operand xs = operand(x, c);
    Operand ys = operand(y, c);
    int m = Math.toIntExact(c.size(-2));
    int n = Math.toIntExact(c.size(-1));
    int k = Math.toIntExact(a.size(-1));
    long[] left = new long[m * k];
    long[] right = new long[k * n];
    long[] out = new long[n];
    long[] before = new long[n];
    Cursor from = new Cursor(c);
    Cursor to = new Cursor(c);
    long count = c.numel() / ((long) m * n);
    for (long batch = 0; batch < count; batch++) {
      Memory.get(xs.address + 8 * offset(batch, c, xs.batchStrides), left, 0, m * k);
      Memory.get(ys.address + 8 * offset(batch, c, ys.batchStrides), right, 0, k * n);
      for (int i = 0; i < m; i++) {
        java.util.Arrays.fill(out, 0);
        for (int l = 0; l < k; l++) {
          long v = left[i * k + l];
          for (int j = 0; j < n; j++) {
            out[j] += v * right[l * n + j];
          }
        }
        if (beta != 0) {
          from.read(before, 0, n);
        }
        for (int j = 0; j < n; j++) {
          out[j] = alpha * out[j] + (beta != 0 ? beta * before[j] : 0);
        }
        to.write(out, 0, n);
      }
    }
  }

  private static long offset(long batch, StridedTensor c, long[] batchStrides) {
    long rest = batch;
    long at = 0;
    for (int d = batchStrides.length - 1; d >= 0; d--) {
      at += rest % c.shape()[d] * batchStrides[d];
      rest /= c.shape()[d];
    }
    return at;
  }

  /**
   * c[p, q] = the sum over all leading positions of a[..., p] b[..., q]; equal leading dimensions,
   * c contiguous.
   */
  public static void contractLeading(StridedTensor a, StridedTensor b, StridedTensor c) {
    if (c.numel() == 0) {
      return;
    }
    long rows = a.size(-1) == 0 ? 0 : a.numel() / a.size(-1);
    if (rows == 0) {
      FillKernels.fill(c, 0);
      return;
    }
    try (Temporaries temporaries = new Temporaries()) {
      StridedTensor x = rows2d(temporaries, a, rows);
      StridedTensor y = rows2d(temporaries, b, rows);
      StridedTensor xt =
          x.withLayout(
              new long[] {x.size(1), rows},
              new long[] {x.strides()[1], x.strides()[0]},
              x.offset());
      matmul(xt, y, c, 1, 0);
    }
  }

  private static StridedTensor rows2d(Temporaries temporaries, StridedTensor t, long rows) {
    long columns = t.size(-1);
    if (t.ndim() == 2) {
      return t;
    }
    StridedTensor dense = t.isContiguous() ? t : temporaries.packed(t, t.dtype());
    return dense.withLayout(new long[] {rows, columns}, new long[] {columns, 1}, dense.offset());
  }
}
