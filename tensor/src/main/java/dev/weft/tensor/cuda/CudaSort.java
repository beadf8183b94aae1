package dev.weft.tensor.cuda;

import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;

/** Orders along a dimension, by a bitonic sort of keys and positions ({@code sort.cu}). */
public final class CudaSort {
  // As CHUNK in sort.cu.
  private static final int CHUNK = 2048;
  private static final int THREADS = 256;
  private static final int SORT_THREADS = 512;
  // What the keys and positions of long rows may take; more rows are sorted in turns.
  private static final long SCRATCH_BYTES = 256L << 20;
  private static final int PAIR_BYTES = 12;

  private static final int ROWS = 0;
  private static final int LOAD = 1;
  private static final int CHUNKS = 2;
  private static final int STEP = 3;
  private static final int STORE = 4;
  private static final KernelTable KERNELS =
      new KernelTable(
          "sort.cu",
          (a, b) -> new String[] {"TYPE=" + CudaTypes.of(a)},
          "sort_rows",
          "sort_load",
          "sort_chunk",
          "sort_step",
          "sort_store");

  private CudaSort() {}

  /**
   * The first elements of each slice in order, and their positions; equal elements keep their
   * order, NaN counts as largest. The outputs' size along the dimension says how many.
   */
  public static void sort(
      StridedTensor in, StridedTensor values, StridedTensor indices, int dim, boolean descending) {
    if (values.numel() == 0) {
      return;
    }
    long n = in.ndim() == 0 ? 1 : in.shape()[dim];
    long wanted = values.ndim() == 0 ? 1 : values.shape()[dim];
    if (n > 1 << 30) {
      throw new IllegalArgumentException(
          "sort: a slice has " + n + " elements; CUDA sorts at most 2^30");
    }
    Rows from = new Rows(in, dim);
    Rows to = new Rows(values, dim);
    long padded = 1;
    while (padded < n) {
      padded *= 2;
    }
    long source = in.dataAddress();
    if (n <= CHUNK) {
      Launch launch =
          Launch.on(in.device().index())
              .int64(source)
              .int64(values.dataAddress())
              .int64(indices.dataAddress())
              .int32((int) n)
              .int32((int) padded)
              .int32((int) wanted)
              .int32(descending ? 1 : 0);
      from.add(launch);
      to.add(launch);
      int threads = (int) Math.max(32, Math.min(SORT_THREADS, padded / 2));
      launch.run(KERNELS.get(ROWS, in.dtype(), in.dtype()), from.space.numel, threads);
      return;
    }
    long rows = from.space.numel;
    long turn = Math.max(1, Math.min(rows, SCRATCH_BYTES / (padded * PAIR_BYTES)));
    Device device = in.device();
    try (CudaTemporaries temporaries = new CudaTemporaries(in.device())) {
      long keys = temporaries.bytes(turn * padded * 8).dataAddress();
      long at = temporaries.bytes(turn * padded * 4).dataAddress();
      for (long first = 0; first < rows; first += turn) {
        long count = Math.min(turn, rows - first);
        load(in, source, keys, at, first, count, n, padded, descending, from);
        sortKeys(in, keys, at, count, padded);
        Launch launch =
            Launch.on(device.index())
                .int64(source)
                .int64(at)
                .int64(values.dataAddress())
                .int64(indices.dataAddress())
                .int64(first)
                .int64(count)
                .int64(wanted)
                .int64(padded);
        from.add(launch);
        to.add(launch);
        launch.run(
            KERNELS.get(STORE, in.dtype(), in.dtype()),
            Grids.blocks(device.index(), count * wanted, THREADS),
            THREADS);
      }
    }
  }

  private static void load(
      StridedTensor in,
      long source,
      long keys,
      long at,
      long first,
      long count,
      long n,
      long padded,
      boolean descending,
      Rows from) {
    int device = in.device().index();
    Launch launch =
        Launch.on(device)
            .int64(source)
            .int64(keys)
            .int64(at)
            .int64(first)
            .int64(count)
            .int64(n)
            .int64(padded)
            .int32(descending ? 1 : 0);
    from.add(launch);
    launch.run(
        KERNELS.get(LOAD, in.dtype(), in.dtype()),
        Grids.blocks(device, count * padded, THREADS),
        THREADS);
  }

  private static void sortKeys(StridedTensor in, long keys, long at, long rows, long padded) {
    int device = in.device().index();
    chunks(in, keys, at, rows, padded, 2, CHUNK, 0);
    long pairs = rows * padded / 2;
    for (long stage = 2 * CHUNK; stage <= padded; stage *= 2) {
      for (long distance = stage / 2; distance >= CHUNK; distance /= 2) {
        Launch.on(device)
            .int64(keys)
            .int64(at)
            .int64(pairs)
            .int64(padded)
            .int64(stage)
            .int64(distance)
            .run(
                KERNELS.get(STEP, in.dtype(), in.dtype()),
                Grids.blocks(device, pairs, THREADS),
                THREADS);
      }
      chunks(in, keys, at, rows, padded, stage, stage, CHUNK / 2);
    }
  }

  private static void chunks(
      StridedTensor in,
      long keys,
      long at,
      long rows,
      long padded,
      long stage,
      long last,
      int distance) {
    Launch.on(in.device().index())
        .int64(keys)
        .int64(at)
        .int64(padded)
        .int64(stage)
        .int64(last)
        .int32(distance)
        .run(KERNELS.get(CHUNKS, in.dtype(), in.dtype()), rows * padded / CHUNK, SORT_THREADS);
  }

  /** The rows of a tensor along a dimension. */
  private static final class Rows {
    final Geometry space;
    final long step;

    Rows(StridedTensor t, int dim) {
      int n = t.ndim();
      long[] shape = new long[Math.max(0, n - 1)];
      long[] strides = new long[shape.length];
      int at = 0;
      for (int d = 0; d < n; d++) {
        if (d != dim) {
          shape[at] = t.shape()[d];
          strides[at++] = t.strides()[d];
        }
      }
      space = Geometry.of(shape, new long[][] {strides});
      step = n == 0 ? 1 : t.strides()[dim];
    }

    void add(Launch launch) {
      launch.align(8);
      space.addSizes(launch);
      space.addStrides(launch, 0);
      launch.int64(step).int32(space.ndim).align(8);
    }
  }
}
