package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;

/**
 * Rows of a table at given positions, and the sum of gradients by row, on a GPU. Sums are taken in
 * the order of positions, so that equal inputs give equal bits. An index that is out of range gives
 * NaN and is reported at the next synchronisation ({@link CudaFaults}).
 */
public final class CudaEmbedding {
  private static final int THREADS = 256;
  private static final int SUM_THREADS = 128;
  private static final long FORWARD = CudaFaults.code("embedding");
  private static final long BACKWARD = CudaFaults.code("embedding_backward");
  private static final KernelsByDType WIDE = kernel("embedding_wide");
  private static final KernelsByDType SINGLE = kernel("embedding_single");
  private static final KernelsByDType COUNT = kernel("embedding_count");
  private static final KernelsByDType STARTS = kernel("embedding_starts");
  private static final KernelsByDType PLACES = kernel("embedding_places");
  private static final KernelsByDType SUM_WIDE = kernel("embedding_sum_wide");
  private static final KernelsByDType SUM_SINGLE = kernel("embedding_sum_single");

  private CudaEmbedding() {}

  private static KernelsByDType kernel(String name) {
    return new KernelsByDType("embedding.cu", name);
  }

  /** out[..., :] = table[indices[...], :]. */
  public static void forward(StridedTensor table, StridedTensor indices, StridedTensor out) {
    if (out.numel() == 0) {
      return;
    }
    int device = out.device().index();
    long n = table.size(1);
    long count = indices.numel();
    int vector = 16 / table.dtype().byteSize();
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      StridedTensor rows =
          table.strides()[1] == 1 || n == 1 ? table : temporaries.packed(table, table.dtype());
      if (table.size(0) == 0) {
        throw new IndexOutOfBoundsException(
            "embedding: the table " + table.describe() + " has no rows to look up");
      }
      long pitch = rows.strides()[0];
      long from = rows.dataAddress();
      long to = out.dataAddress();
      boolean vectors = n % vector == 0 && pitch % vector == 0 && (from | to) % 16 == 0;
      long index = temporaries.contiguous(indices, DType.INT64).dataAddress();
      long fault = CudaFaults.record(device);
      long items = vectors ? n / vector : n;
      int x = items >= 128 ? 128 : items > 32 ? 64 : 32;
      int y = THREADS / x;
      Launch.on(device)
          .int64(from)
          .int64(index)
          .int64(to)
          .int64(count)
          .int64(table.size(0))
          .int64(n)
          .int64(pitch)
          .int64(fault)
          .int64(FORWARD)
          .run(
              (vectors ? WIDE : SINGLE).of(table.dtype()),
              Grids.blocks(device, count, y),
              1,
              1,
              x,
              y,
              0);
    }
  }

  /** The sum of the gradient's rows at their table positions; row {@code padding} gets none. */
  public static void backward(
      StridedTensor g, StridedTensor indices, StridedTensor out, long padding) {
    if (out.numel() == 0) {
      return;
    }
    long count = indices.numel();
    if (count == 0) {
      CudaFills.fill(out, 0);
      return;
    }
    if (count > Integer.MAX_VALUE) {
      throw new UnsupportedOperationException(
          "embedding_backward on a GPU takes at most "
              + Integer.MAX_VALUE
              + " indices; got "
              + indices.describe());
    }
    int device = out.device().index();
    long rows = out.size(0);
    long n = out.size(1);
    DType dtype = out.dtype();
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      long from = temporaries.contiguous(g, dtype).dataAddress();
      long index = temporaries.contiguous(indices, DType.INT64).dataAddress();
      StridedTensor counted = temporaries.empty(DType.INT32, rows);
      CudaFills.fill(counted, 0);
      long counts = counted.dataAddress();
      long starts = temporaries.empty(DType.INT32, rows).dataAddress();
      long next = temporaries.empty(DType.INT32, rows).dataAddress();
      long places = temporaries.empty(DType.INT32, count).dataAddress();
      long fault = CudaFaults.record(device);
      long blocks = Grids.blocks(device, count, THREADS);
      Launch.on(device)
          .int64(index)
          .int64(counts)
          .int32((int) count)
          .int64(rows)
          .int64(fault)
          .int64(BACKWARD)
          .run(COUNT.of(dtype), blocks, THREADS);
      Launch.on(device)
          .int64(counts)
          .int64(starts)
          .int64(next)
          .int64(rows)
          .run(STARTS.of(dtype), 1, 1024);
      Launch.on(device)
          .int64(index)
          .int64(next)
          .int64(places)
          .int32((int) count)
          .int64(rows)
          .run(PLACES.of(dtype), blocks, THREADS);
      int vector = 16 / dtype.byteSize();
      boolean vectors = n % vector == 0 && (from | out.dataAddress()) % 16 == 0;
      long slice = (long) SUM_THREADS * (vectors ? vector : 1);
      Launch.on(device)
          .int64(from)
          .int64(index)
          .int64(counts)
          .int64(starts)
          .int64(places)
          .int64(out.dataAddress())
          .int32((int) count)
          .int64(n)
          .int64(padding)
          .run(
              (vectors ? SUM_WIDE : SUM_SINGLE).of(dtype),
              rows,
              Math.toIntExact((n + slice - 1) / slice),
              1,
              SUM_THREADS,
              1,
              0);
    }
  }
}
