package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;

/**
 * Matrix products of any layout on a GPU. Floating-point ones go to cuBLAS, transposed operands and
 * operands with gaps between rows without a copy; float16 and bfloat16 are summed in float32.
 * Integers are multiplied by a kernel that wraps.
 */
public final class CudaMatMul {
  private static final int TILE = 16;

  private CudaMatMul() {}

  /**
   * c = alpha a b + beta c for a [..., m, k], b [..., k, n], c [..., m, n], where batch dimensions
   * of a and b broadcast to those of c; c is contiguous. The dtype of c is that of a and b, or
   * float32 where those are float16 or bfloat16.
   */
  public static void matmul(
      StridedTensor a, StridedTensor b, StridedTensor c, double alpha, double beta) {
    if (c.numel() == 0) {
      return;
    }
    if (a.size(-1) == 0) {
      // The sum over nothing; adding it changes nothing but c's factor.
      if (beta == 0) {
        CudaFills.fill(c, 0);
        return;
      }
      try (CudaTemporaries temporaries = new CudaTemporaries(c.device())) {
        StridedTensor left = temporaries.empty(a.dtype(), c.size(-2), 1);
        StridedTensor right = temporaries.empty(a.dtype(), 1, c.size(-1));
        CudaFills.fill(left, 0);
        CudaFills.fill(right, 0);
        product(left, right, c, alpha, beta);
      }
      return;
    }
    product(a, b, c, alpha, beta);
  }

  private static void product(
      StridedTensor a, StridedTensor b, StridedTensor c, double alpha, double beta) {
    if (!CudaBlas.takes(a.dtype())) {
      integers(a, b, c, (long) alpha, (long) beta);
      return;
    }
    if (isReadable(a) && isReadable(b)) {
      batches(a, b, c, alpha, beta);
      return;
    }
    try (CudaTemporaries temporaries = new CudaTemporaries(c.device())) {
      batches(
          isReadable(a) ? a : temporaries.packed(a, a.dtype()),
          isReadable(b) ? b : temporaries.packed(b, b.dtype()),
          c,
          alpha,
          beta);
    }
  }

  /** Whether the matrices' rows or columns are dense and lie apart. */
  private static boolean isReadable(StridedTensor t) {
    int n = t.ndim();
    long rows = t.shape()[n - 2];
    long columns = t.shape()[n - 1];
    long rowStride = t.strides()[n - 2];
    long columnStride = t.strides()[n - 1];
    if (rowStride > Integer.MAX_VALUE || columnStride > Integer.MAX_VALUE) {
      return false;
    }
    return isPlain(rowStride, columnStride, rows, columns)
        || isPlain(columnStride, rowStride, columns, rows);
  }

  private static boolean isPlain(long rowStride, long columnStride, long rows, long columns) {
    return (columnStride == 1 || columns == 1) && (rows == 1 || rowStride >= Math.max(1, columns));
  }

  /** The distance of rows; of a single row it does not matter, but cuBLAS checks it. */
  private static int leading(long stride, long rows, long columns) {
    return (int) (rows == 1 ? Math.max(1, columns) : stride);
  }

  private static int size(long n, String what, StridedTensor t) {
    if (n > Integer.MAX_VALUE) {
      throw new UnsupportedOperationException(
          "matrix products on a GPU take sizes below 2^31; "
              + what
              + " of "
              + t.describe()
              + " is "
              + n);
    }
    return (int) n;
  }

  private static void batches(
      StridedTensor a, StridedTensor b, StridedTensor c, double alpha, double beta) {
    int dims = c.ndim() - 2;
    int m = size(c.size(-2), "a dimension", c);
    int n = size(c.size(-1), "a dimension", c);
    int k = size(a.size(-1), "a dimension", a);
    long aRow = a.strides()[a.ndim() - 2];
    long aColumn = a.strides()[a.ndim() - 1];
    long bRow = b.strides()[b.ndim() - 2];
    long bColumn = b.strides()[b.ndim() - 1];
    boolean ta = !isPlain(aRow, aColumn, m, k);
    boolean tb = !isPlain(bRow, bColumn, k, n);
    int lda = ta ? leading(aColumn, k, m) : leading(aRow, m, k);
    int ldb = tb ? leading(bColumn, n, k) : leading(bRow, k, n);
    CudaBlas blas = CudaBlas.of(c.device().index());
    long aAt = a.dataAddress();
    long bAt = b.dataAddress();
    long cAt = c.dataAddress();
    DType type = a.dtype();
    DType out = c.dtype();
    if (dims == 0) {
      blas.gemm(type, out, ta, tb, m, n, k, alpha, aAt, lda, 0, bAt, ldb, 0, beta, cAt, n, 0, 1);
      return;
    }
    // Batch dimensions from the innermost one, merged where all step through them as one.
    long[] sizes = new long[dims];
    long[] aSteps = new long[dims];
    long[] bSteps = new long[dims];
    int used = 0;
    for (int d = dims - 1; d >= 0; d--) {
      long size = c.shape()[d];
      if (size == 1) {
        continue;
      }
      long as = batchStride(a, d - dims);
      long bs = batchStride(b, d - dims);
      if (used > 0
          && as == aSteps[used - 1] * sizes[used - 1]
          && bs == bSteps[used - 1] * sizes[used - 1]) {
        sizes[used - 1] *= size;
      } else {
        sizes[used] = size;
        aSteps[used] = as;
        bSteps[used++] = bs;
      }
    }
    long matrix = (long) m * n;
    // Many matrices times one: a single product where the rows go on evenly.
    if (used > 0 && !ta && bSteps[0] == 0 && (m == 1 || aSteps[0] == m * aRow)) {
      long rows = sizes[0] * m;
      long step = m == 1 ? aSteps[0] : aRow;
      boolean fits = rows <= Integer.MAX_VALUE && step >= k && step <= Integer.MAX_VALUE;
      if (fits && (aColumn == 1 || k == 1)) {
        m = (int) rows;
        lda = leading(step, rows, k);
        matrix = rows * n;
        sizes[0] = 1;
      }
    }
    int batch = used == 0 ? 1 : size(sizes[0], "the batch", c);
    long as = used == 0 ? 0 : aSteps[0];
    long bs = used == 0 ? 0 : bSteps[0];
    long outer = 1;
    for (int d = 1; d < used; d++) {
      outer *= sizes[d];
    }
    int width = type.byteSize();
    long cStep = matrix * batch * out.byteSize();
    for (long i = 0; i < outer; i++) {
      long rest = i;
      long aBy = 0;
      long bBy = 0;
      for (int d = 1; d < used; d++) {
        long at = rest % sizes[d];
        rest /= sizes[d];
        aBy += at * aSteps[d];
        bBy += at * bSteps[d];
      }
      blas.gemm(
          type,
          out,
          ta,
          tb,
          m,
          n,
          k,
          alpha,
          aAt + aBy * width,
          lda,
          as,
          bAt + bBy * width,
          ldb,
          bs,
          beta,
          cAt + i * cStep,
          n,
          matrix,
          batch);
    }
  }

  /** The stride of a batch dimension, counted from the matrix: -1 is next to it. */
  private static long batchStride(StridedTensor t, int fromMatrix) {
    int d = t.ndim() - 2 + fromMatrix;
    return d < 0 || t.shape()[d] == 1 ? 0 : t.strides()[d];
  }

  private static void integers(
      StridedTensor a, StridedTensor b, StridedTensor c, long alpha, long beta) {
    long m = c.size(-2);
    long n = c.size(-1);
    int device = c.device().index();
    CudaKernel kernel =
        KernelModule.of("matmul.cu", "T=" + CudaTypes.of(c.dtype())).kernel("matmul_whole");
    long[] batchShape = java.util.Arrays.copyOf(c.shape(), c.ndim() - 2);
    Geometry g =
        Geometry.of(
            batchShape,
            new long[][] {batchStrides(a, c.ndim() - 2), batchStrides(b, c.ndim() - 2)});
    long rowTiles = (m + TILE - 1) / TILE;
    if (rowTiles > 65535) {
      throw new UnsupportedOperationException(
          "products of integer matrices on a GPU take at most "
              + 65535L * TILE
              + " rows; got "
              + c.describe());
    }
    long x = a.dataAddress();
    long y = b.dataAddress();
    long z = c.dataAddress();
    Launch launch =
        Launch.on(device)
            .int64(x)
            .int64(y)
            .int64(z)
            .int64(m)
            .int64(n)
            .int64(a.size(-1))
            .int64(a.strides()[a.ndim() - 2])
            .int64(a.strides()[a.ndim() - 1])
            .int64(b.strides()[b.ndim() - 2])
            .int64(b.strides()[b.ndim() - 1])
            .int64(alpha)
            .int64(beta)
            .int64(g.numel)
            .int32(g.ndim)
            .align(8);
    g.addSizes(launch);
    g.addStrides(launch, 0);
    g.addStrides(launch, 1);
    launch.run(
        kernel,
        (n + TILE - 1) / TILE,
        (int) rowTiles,
        (int) Math.min(65535, g.numel),
        TILE,
        TILE,
        0);
  }

  private static long[] batchStrides(StridedTensor t, int dims) {
    long[] strides = new long[dims];
    for (int d = 0; d < dims; d++) {
      strides[d] = batchStride(t, d - dims);
    }
    return strides;
  }

  /**
   * c[p, q] = the sum over all leading positions of a[..., p] b[..., q]; equal leading dimensions,
   * c contiguous, of a's dtype or float32.
   */
  public static void contractLeading(StridedTensor a, StridedTensor b, StridedTensor c) {
    if (c.numel() == 0) {
      return;
    }
    long rows = a.numel() / a.size(-1);
    if (rows == 0) {
      CudaFills.fill(c, 0);
      return;
    }
    try (CudaTemporaries temporaries = new CudaTemporaries(c.device())) {
      StridedTensor x = rows(temporaries, a, rows);
      StridedTensor y = rows(temporaries, b, rows);
      StridedTensor xt =
          x.withLayout(
              new long[] {x.shape()[1], rows},
              new long[] {x.strides()[1], x.strides()[0]},
              x.offset());
      matmul(xt, y, c, 1, 0);
    }
  }

  /** The tensor as a matrix of its rows. */
  private static StridedTensor rows(CudaTemporaries temporaries, StridedTensor t, long rows) {
    int n = t.ndim();
    if (n == 2) {
      return t;
    }
    long columns = t.shape()[n - 1];
    if (n == 1) {
      return t.withLayout(
          new long[] {1, columns}, new long[] {columns, t.strides()[0]}, t.offset());
    }
    long step = 0;
    long size = 1;
    boolean even = true;
    for (int d = n - 2; d >= 0; d--) {
      if (t.shape()[d] == 1) {
        continue;
      }
      if (size == 1) {
        step = t.strides()[d];
      } else {
        even &= t.strides()[d] == step * size;
      }
      size *= t.shape()[d];
    }
    if (!even) {
      StridedTensor dense = temporaries.packed(t, t.dtype());
      return dense.withLayout(new long[] {rows, columns}, new long[] {columns, 1}, 0);
    }
    return t.withLayout(
        new long[] {rows, columns},
        new long[] {size == 1 ? columns : step, t.strides()[n - 1]},
        t.offset());
  }

  /**
   * out = x weight^T + bias for x [..., in], weight [out, in]; a bias [out] is added before
   * rounding.
   */
  public static void linear(StridedTensor[] in, StridedTensor x, StridedTensor out) {
    StridedTensor w = in[1];
    StridedTensor wt =
        w.withLayout(
            new long[] {w.shape()[1], w.shape()[0]},
            new long[] {w.strides()[1], w.strides()[0]},
            w.offset());
    boolean bias = in.length > 2;
    if (bias) {
      broadcast(in[2], out);
    }
    matmul(x, wt, out, 1, bias ? 1 : 0);
  }

  /** Fills a tensor with a smaller one's values. */
  public static void broadcast(StridedTensor from, StridedTensor to) {
    int n = to.ndim();
    int lead = n - from.ndim();
    long[] strides = new long[n];
    for (int d = lead; d < n; d++) {
      strides[d] = from.shape()[d - lead] == 1 ? 0 : from.strides()[d - lead];
    }
    CudaCopies.copy(from.withLayout(to.shape(), strides, from.offset()), to);
  }
}
