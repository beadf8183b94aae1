package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;

/**
 * A reduction over any set of dimensions on a device ({@code reduce.cu}). Half precision and
 * float32 are combined in float32 by a tree, float64 in float64, integers in int64; equal shapes
 * give equal bits. Thread-safe.
 */
public final class CudaReduce {
  /** The sum. */
  public static final CudaReduce SUM = new CudaReduce("SumOf");

  /** The sum divided by the number told. */
  public static final CudaReduce MEAN = new CudaReduce("MeanOf");

  /** The product. */
  public static final CudaReduce PROD = new CudaReduce("ProdOf");

  /** The largest element, or NaN. */
  public static final CudaReduce AMAX = new CudaReduce("AmaxOf");

  /** The smallest element, or NaN. */
  public static final CudaReduce AMIN = new CudaReduce("AminOf");

  /** The index of the first largest element, or of the first NaN. */
  public static final CudaReduce ARGMAX = new CudaReduce("ArgmaxOf");

  /** The index of the first smallest element, or of the first NaN. */
  public static final CudaReduce ARGMIN = new CudaReduce("ArgminOf");

  /** Whether all elements are not 0. */
  public static final CudaReduce ALL = new CudaReduce("AllOf");

  /** Whether some element is not 0. */
  public static final CudaReduce ANY = new CudaReduce("AnyOf");

  /** The variance with a divisor of the count minus the number told. */
  public static final CudaReduce VAR = new CudaReduce("VarOf");

  /** The root of the variance. */
  public static final CudaReduce STD = new CudaReduce("StdOf");

  /** ln of the sum of exponentials. */
  public static final CudaReduce LOG_SUM_EXP = new CudaReduce("LogsumexpOf");

  private static final CudaReduce NORM_2 = new CudaReduce("Norm2Of");
  private static final CudaReduce NORM_1 = new CudaReduce("Norm1Of");
  private static final CudaReduce NORM_0 = new CudaReduce("Norm0Of");
  private static final CudaReduce NORM_MAX = new CudaReduce("NormMaxOf");
  private static final CudaReduce NORM_MIN = new CudaReduce("NormMinOf");
  private static final CudaReduce NORM_P = new CudaReduce("NormOf");

  private static final int THREADS = 256;
  private static final int WARP = 32;
  private static final int COLUMN_ROWS = 16;
  // Loads that a thread has in flight; as UNROLL in reduce.cu.
  private static final int UNROLL = 4;
  // Results next to each other from which on a thread for each reads whole sectors.
  private static final int LEAST_COLUMNS = 8;
  private static final int BLOCKS_PER_MULTIPROCESSOR = 4;
  // The largest state: three doubles.
  private static final int STATE_BYTES = 24;

  private final String operator;
  private final KernelTable rows;
  private final KernelTable columns;

  private CudaReduce(String operator) {
    this.operator = operator;
    this.rows = table(0, "rows");
    this.columns = table(1, "columns");
  }

  private KernelTable table(int part, String kernel) {
    return new KernelTable(
        "reduce.cu",
        (in, out) -> {
          DType compute = in.isFloatingPoint() ? in : out.isFloatingPoint() ? out : DType.INT64;
          return new String[] {
            "OP=" + operator,
            "IN=" + CudaTypes.of(in),
            "OUT=" + CudaTypes.of(out),
            "ACC=" + CudaTypes.accumulator(compute),
            "PART=" + part
          };
        },
        kernel,
        "finish");
  }

  /** The reduction for the p-norm; p is told as well. */
  public static CudaReduce norm(double p) {
    if (p == 2) {
      return NORM_2;
    }
    if (p == 1) {
      return NORM_1;
    }
    if (p == 0) {
      return NORM_0;
    }
    return p == Double.POSITIVE_INFINITY
        ? NORM_MAX
        : p == Double.NEGATIVE_INFINITY ? NORM_MIN : NORM_P;
  }

  /**
   * Reduces some dimensions.
   *
   * @param in any strides
   * @param out contiguous, one element for each position of the other dimensions
   * @param dims the dimensions, in ascending order
   * @param told the divisor, correction or order, where the reduction has one
   */
  public void run(StridedTensor in, StridedTensor out, int[] dims, double told) {
    long results = out.numel();
    if (results == 0) {
      return;
    }
    int n = in.ndim();
    boolean[] reduced = new boolean[n];
    for (int d : dims) {
      reduced[d] = true;
    }
    Geometry kept = pick(in, reduced, n - dims.length, false);
    Geometry elements = pick(in, reduced, dims.length, true);
    if (kept.ndim > 0
        && kept.strides[0][0] == 1
        && kept.sizes[0] >= LEAST_COLUMNS
        && !elements.isDense(0)) {
      columns(in, out, kept, elements, told);
    } else {
      rows(in, out, kept, elements, told);
    }
  }

  private static Geometry pick(StridedTensor in, boolean[] reduced, int count, boolean which) {
    long[] shape = new long[count];
    long[] strides = new long[count];
    int at = 0;
    for (int d = 0; d < reduced.length; d++) {
      if (reduced[d] == which) {
        shape[at] = in.shape()[d];
        strides[at++] = in.strides()[d];
      }
    }
    return Geometry.of(shape, new long[][] {strides});
  }

  private void rows(
      StridedTensor in, StridedTensor out, Geometry kept, Geometry elements, double told) {
    int device = out.device().index();
    long results = out.numel();
    int width = 16 / in.dtype().byteSize();
    boolean dense = elements.isDense(0);
    boolean vector = dense && elements.numel >= width && in.dataAddress() % 16 == 0;
    for (int d = 0; d < kept.ndim; d++) {
      vector &= kept.strides[0][d] % width == 0;
    }
    long items = vector ? (elements.numel + width - 1) / width : elements.numel;
    int x = THREADS;
    long splits = 1;
    if (items <= THREADS) {
      x = WARP;
      while (x > 1 && x / 2 >= items) {
        x /= 2;
      }
    } else {
      long blocks = blocks(device);
      long most = (items + (long) THREADS * UNROLL - 1) / ((long) THREADS * UNROLL);
      splits = Math.max(1, Math.min((blocks + results - 1) / results, most));
    }
    int y = THREADS / x;
    long gridX = (results + y - 1) / y;
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      long parts = parts(temporaries, out, splits);
      Launch launch = begin(in, out, parts, elements.numel, told);
      launch.int32(dense ? 1 : 0).int32(vector ? 1 : 0);
      addSpace(launch, kept, elements);
      launch.run(rows.get(0, in.dtype(), out.dtype()), gridX, (int) splits, 1, x, y, 0);
      finish(rows, in, out, parts, splits, told);
    }
  }

  private void columns(
      StridedTensor in, StridedTensor out, Geometry kept, Geometry elements, double told) {
    int device = out.device().index();
    long gridX = (out.numel() + WARP - 1) / WARP;
    long most = (elements.numel + COLUMN_ROWS * UNROLL - 1) / (COLUMN_ROWS * UNROLL);
    long splits = Math.max(1, Math.min((blocks(device) + gridX - 1) / gridX, most));
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      long parts = parts(temporaries, out, splits);
      Launch launch = begin(in, out, parts, elements.numel, told);
      addSpace(launch, kept, elements);
      launch.run(
          columns.get(0, in.dtype(), out.dtype()), gridX, (int) splits, 1, WARP, COLUMN_ROWS, 0);
      finish(columns, in, out, parts, splits, told);
    }
  }

  private static long blocks(int device) {
    return (long) Cuda.properties(device).multiprocessors() * BLOCKS_PER_MULTIPROCESSOR;
  }

  private static long parts(CudaTemporaries temporaries, StridedTensor out, long splits) {
    return splits == 1 ? 0 : temporaries.bytes(splits * out.numel() * STATE_BYTES).dataAddress();
  }

  private static Launch begin(
      StridedTensor in, StridedTensor out, long parts, long elements, double told) {
    long source = in.dataAddress();
    return Launch.on(out.device().index())
        .int64(source)
        .int64(out.dataAddress())
        .int64(parts)
        .int64(out.numel())
        .int64(elements)
        .float64(told);
  }

  private static void addSpace(Launch launch, Geometry kept, Geometry elements) {
    launch.align(8);
    kept.addSizes(launch);
    kept.addStrides(launch, 0);
    elements.addSizes(launch);
    elements.addStrides(launch, 0);
    launch.int32(kept.ndim).int32(elements.ndim);
  }

  private static void finish(
      KernelTable kernels,
      StridedTensor in,
      StridedTensor out,
      long parts,
      long splits,
      double told) {
    if (splits == 1) {
      return;
    }
    int y = THREADS / WARP;
    long results = out.numel();
    Launch.on(out.device().index())
        .int64(parts)
        .int64(out.dataAddress())
        .int64(results)
        .int32((int) splits)
        .float64(told)
        .run(kernels.get(1, in.dtype(), out.dtype()), (results + y - 1) / y, 1, 1, WARP, y, 0);
  }

  @Override
  public String toString() {
    return "CUDA reduction " + operator;
  }
}
