package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;

/**
 * Reads and additions at computed positions. Positions out of range are reported by {@link
 * CudaFaults}. Additions happen in a fixed order, without atomics. Any thread.
 */
public final class CudaIndexing {
  private static final int THREADS = 256;
  private static final int WIDEST_UNIT = 16;
  // Up to here a thread adds a row's elements one by one; longer rows are sorted by position.
  private static final int SERIAL = 32;

  private static final int GATHER = CudaFaults.code("gather");
  private static final int GATHER_BACKWARD = CudaFaults.code("gather_backward");
  private static final int SCATTER_ADD = CudaFaults.code("scatter_add");
  private static final int INDEX_SELECT = CudaFaults.code("index_select");
  private static final int INDEX_SELECT_BACKWARD = CudaFaults.code("index_select_backward");

  private static final String[] UNITS = {"u8", "u16", "u32", "u64", "u128"};
  // By the unit's power of two, and whether the index is int32.
  private static final CudaKernel[][] GATHERS = new CudaKernel[UNITS.length][2];
  private static final CudaKernel[] TRIANGLES = new CudaKernel[UNITS.length];

  private static final int SERIAL_KERNEL = 0;
  private static final int SORTED_KERNEL = 1;
  private static final KernelTable SCATTERS =
      new KernelTable(
          "scatter.cu",
          (type, index) ->
              new String[] {
                "TYPE=" + CudaTypes.of(type),
                "ACC=" + CudaTypes.accumulator(type),
                "INDEX=" + CudaTypes.of(index)
              },
          "scatter_serial",
          "scatter_sorted");

  private CudaIndexing() {}

  private static CudaKernel gatherKernel(int unit, DType index) {
    int which = index == DType.INT32 ? 1 : 0;
    CudaKernel k = GATHERS[unit][which];
    if (k == null) {
      k =
          KernelModule.of("gather.cu", "UNIT=" + UNITS[unit], "INDEX=" + CudaTypes.of(index))
              .kernel("gather");
      GATHERS[unit][which] = k;
    }
    return k;
  }

  private static CudaKernel triangleKernel(int unit) {
    CudaKernel k = TRIANGLES[unit];
    if (k == null) {
      k = KernelModule.of("gather.cu", "UNIT=" + UNITS[unit], "INDEX=i64").kernel("triangle");
      TRIANGLES[unit] = k;
    }
    return k;
  }

  /** The index as int64, or as int32 where it is: smaller integers are converted. */
  private static StridedTensor index(CudaTemporaries temporaries, StridedTensor index) {
    return index.dtype() == DType.INT64 || index.dtype() == DType.INT32
        ? index
        : temporaries.packed(index, DType.INT64);
  }

  /** out[p] = in[p with its coordinate along dim replaced by index[p]]. */
  public static void gather(StridedTensor in, StridedTensor index, StridedTensor out, int dim) {
    if (out.numel() == 0) {
      return;
    }
    long[] inStrides = in.strides().clone();
    if (in.ndim() > 0) {
      inStrides[dim] = 0;
    }
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      StridedTensor at = index(temporaries, index);
      read(GATHER, in, at, out, dim, inStrides, at.strides());
    }
  }

  /** Slices along a dimension by a vector of positions. */
  public static void indexSelect(
      StridedTensor in, StridedTensor index, StridedTensor out, int dim) {
    if (out.numel() == 0) {
      return;
    }
    long[] inStrides = in.strides().clone();
    inStrides[dim] = 0;
    long[] indexStrides = new long[in.ndim()];
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      StridedTensor at = index(temporaries, index);
      indexStrides[dim] = at.strides()[0];
      read(INDEX_SELECT, in, at, out, dim, inStrides, indexStrides);
    }
  }

  private static void read(
      int op,
      StridedTensor in,
      StridedTensor index,
      StridedTensor out,
      int dim,
      long[] inStrides,
      long[] indexStrides) {
    int device = out.device().index();
    long source = in.dataAddress();
    long target = out.dataAddress();
    long positions = index.dataAddress();
    long step = in.ndim() == 0 ? 0 : in.strides()[dim];
    long size = in.ndim() == 0 ? 1 : in.shape()[dim];
    Geometry g = Geometry.of(out.shape(), new long[][] {inStrides, indexStrides});
    long n = g.numel;
    int unit = Integer.numberOfTrailingZeros(in.dtype().byteSize());
    // Neighbours that share an index and lie together move together.
    while (1 << unit < WIDEST_UNIT && g.ndim > 0 && pairs(g, step, source | target, unit)) {
      g.sizes[0] /= 2;
      for (int d = 1; d < g.ndim; d++) {
        g.strides[0][d] /= 2;
      }
      step /= 2;
      n /= 2;
      unit++;
    }
    Launch launch =
        Launch.on(device)
            .int64(source)
            .int64(positions)
            .int64(target)
            .int64(n)
            .int64(size)
            .int64(step)
            .int64(CudaFaults.record(device))
            .int32(op)
            .int32(g.ndim);
    g.addSizes(launch);
    g.addStrides(launch, 0);
    g.addStrides(launch, 1);
    launch.run(gatherKernel(unit, index.dtype()), Grids.blocks(device, n, THREADS), THREADS);
  }

  private static boolean pairs(Geometry g, long step, long addresses, int unit) {
    boolean even =
        g.strides[0][0] == 1
            && g.strides[1][0] == 0
            && g.sizes[0] % 2 == 0
            && step % 2 == 0
            && addresses % (2L << unit) == 0;
    for (int d = 1; d < g.ndim; d++) {
      even &= g.strides[0][d] % 2 == 0;
    }
    return even;
  }

  /** Zeros with {@code source} added at its positions along dim. */
  public static void gatherBackward(
      StridedTensor source, StridedTensor index, StridedTensor out, int dim) {
    CudaFills.fill(out, 0);
    add(GATHER_BACKWARD, out, index, index.strides(), source, dim);
  }

  /** A copy of {@code in} with {@code source} added at its positions along dim. */
  public static void scatterAdd(
      StridedTensor in, StridedTensor index, StridedTensor source, StridedTensor out, int dim) {
    CudaCopies.copy(in, out);
    add(SCATTER_ADD, out, index, index.strides(), source, dim);
  }

  /** The sum of slices at their positions along a dimension. */
  public static void indexSelectBackward(
      StridedTensor g, StridedTensor index, StridedTensor out, int dim) {
    CudaFills.fill(out, 0);
    long[] strides = new long[g.ndim()];
    strides[dim] = index.strides()[0];
    add(INDEX_SELECT_BACKWARD, out, index, strides, g, dim);
  }

  /** Adds along dim; {@code indexStrides} show the index in the source's shape. */
  private static void add(
      int op,
      StridedTensor out,
      StridedTensor index,
      long[] indexStrides,
      StridedTensor source,
      int dim) {
    if (source.numel() == 0) {
      return;
    }
    boolean scalar = source.ndim() == 0;
    long n = scalar ? 1 : source.shape()[dim];
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      StridedTensor at = index;
      long[] atStrides = indexStrides;
      if (index.dtype() != DType.INT64 && index.dtype() != DType.INT32) {
        at = temporaries.packed(index, DType.INT64);
        atStrides = relaid(indexStrides, at, dim);
      }
      StridedTensor values =
          source.dtype() == out.dtype() ? source : temporaries.packed(source, out.dtype());
      StridedTensor position = at;
      boolean sorted = n > SERIAL;
      if (sorted) {
        StridedTensor order = temporaries.empty(at.dtype(), at.shape());
        position = temporaries.empty(DType.INT64, at.shape());
        CudaSort.sort(at, order, position, at.ndim() == 1 ? 0 : dim, false);
        atStrides = relaid(atStrides, order, dim);
        at = order;
      }
      int device = out.device().index();
      Geometry rows = rows(source.shape(), dim, out.strides(), atStrides, values.strides());
      long from = values.dataAddress();
      long indices = at.dataAddress();
      long positions = position.dataAddress();
      Launch launch = Launch.on(device).int64(out.dataAddress()).int64(indices);
      if (sorted) {
        launch.int64(positions);
      }
      launch
          .int64(from)
          .int64(rows.numel)
          .int64(n)
          .int64(scalar ? 1 : out.shape()[dim])
          .int64(scalar ? 1 : out.strides()[dim])
          .int64(scalar ? 1 : atStrides[dim])
          .int64(scalar ? 1 : values.strides()[dim])
          .int64(CudaFaults.record(device))
          .int32(op)
          .int32(rows.ndim);
      rows.addSizes(launch);
      rows.addStrides(launch, 0);
      rows.addStrides(launch, 1);
      rows.addStrides(launch, 2);
      if (sorted) {
        launch.run(
            SCATTERS.get(SORTED_KERNEL, out.dtype(), at.dtype()),
            Grids.blocks(device, rows.numel * n, THREADS),
            THREADS);
      } else {
        launch.run(
            SCATTERS.get(SERIAL_KERNEL, out.dtype(), at.dtype()),
            (rows.numel + THREADS - 1) / THREADS,
            THREADS);
      }
    }
  }

  /** The strides of a packed copy of an index, which has all dimensions or only that indexed. */
  private static long[] relaid(long[] strides, StridedTensor packed, int dim) {
    if (packed.ndim() == strides.length) {
      return packed.strides();
    }
    long[] out = new long[strides.length];
    out[dim] = packed.strides()[0];
    return out;
  }

  private static Geometry rows(long[] shape, int dim, long[]... all) {
    int n = Math.max(0, shape.length - 1);
    long[] sizes = new long[n];
    long[][] strides = new long[all.length][n];
    int at = 0;
    for (int d = 0; d < shape.length; d++) {
      if (d != dim) {
        sizes[at] = shape[d];
        for (int i = 0; i < all.length; i++) {
          strides[i][at] = all[i][d];
        }
        at++;
      }
    }
    return Geometry.of(sizes, strides);
  }

  /** Copies a matrix (or a batch) and clears what is above (or below) a diagonal. */
  public static void triangle(StridedTensor in, StridedTensor out, long diagonal, boolean lower) {
    long n = out.numel();
    if (n == 0) {
      return;
    }
    int device = out.device().index();
    long source = in.dataAddress();
    Geometry g = Geometry.of(out.shape(), in);
    Launch launch =
        Launch.on(device)
            .int64(source)
            .int64(out.dataAddress())
            .int64(n)
            .int64(out.size(-2))
            .int64(out.size(-1))
            .int64(diagonal)
            .int32(lower ? 1 : 0)
            .int32(g.ndim);
    g.addSizes(launch);
    g.addStrides(launch, 0);
    launch.run(
        triangleKernel(Integer.numberOfTrailingZeros(in.dtype().byteSize())),
        Grids.blocks(device, n, THREADS),
        THREADS);
  }
}
