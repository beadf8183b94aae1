package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import org.jspecify.annotations.Nullable;

/**
 * Layer and RMS normalisation over rows of {@code n} trailing elements on a GPU, with gradients of
 * input and weight apart. Sums over rows are taken in two stages of a fixed order, so that equal
 * inputs give equal bits.
 */
public final class CudaNorms {
  private static final int HELD = 4;
  private static final int ROWS = 4;
  private static final int COLUMNS = 32;
  private static final int WIDE = 0;
  private static final int ANY = 1;
  private static final int BACKWARD_WIDE = 2;
  private static final int BACKWARD_ANY = 3;
  private static final int WEIGHT_WIDE = 4;
  private static final int WEIGHT_SUM = 5;
  private static final int MOMENTS = 6;
  private static final int WEIGHT_ANY = 7;
  private static final KernelTable RMS = kernels("LAYER=0");
  private static final KernelTable LAYER = kernels("LAYER=1");

  /** For the dtypes of the input and of the result. */
  private static KernelTable kernels(String define) {
    return new KernelTable(
        "norm.cu",
        (in, out) -> new String[] {"T=" + CudaTypes.of(in), "O=" + CudaTypes.of(out), define},
        "norm_wide",
        "norm_any",
        "norm_backward_wide",
        "norm_backward_any",
        "norm_weight_wide",
        "norm_weight_sum",
        "norm_moments",
        "norm_weight_any");
  }

  private CudaNorms() {}

  /** Threads of a row held in registers, a multiple of 32; 0 where a row cannot be. */
  private static int threads(DType dtype, int n, long addresses) {
    int vector = 16 / dtype.byteSize();
    if (n % vector != 0 || addresses % 16 != 0) {
      return 0;
    }
    int threads = (n / vector + HELD - 1) / HELD;
    threads = (threads + 31) / 32 * 32;
    return threads <= 1024 ? threads : 0;
  }

  /** The weight as the kernels read it. */
  private static @Nullable StridedTensor row(
      CudaTemporaries temporaries, @Nullable StridedTensor weight) {
    return weight == null ? null : temporaries.contiguous(weight);
  }

  private static long address(@Nullable StridedTensor t) {
    return t == null ? 0 : t.dataAddress();
  }

  /** (x - mean) / deviation * weight + bias for layer, x / root mean square * weight else. */
  public static void forward(
      boolean layer,
      StridedTensor in,
      @Nullable StridedTensor weight,
      @Nullable StridedTensor bias,
      StridedTensor out,
      int n,
      double eps) {
    if (out.numel() == 0) {
      return;
    }
    KernelTable kernels = layer ? LAYER : RMS;
    long rows = out.numel() / n;
    DType dtype = in.dtype();
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      long x = temporaries.contiguous(in).dataAddress();
      long w = address(row(temporaries, weight));
      long b = address(row(temporaries, bias));
      long y = out.dataAddress();
      int threads = threads(dtype, n, x | w | b | y);
      Launch launch =
          Launch.on(out.device().index()).int64(x).int64(w).int64(b).int64(y).int64(rows);
      if (threads > 0) {
        launch.int32(n).float64(eps);
        byRows(launch, kernels.get(WIDE, dtype, out.dtype()), rows, threads);
      } else {
        launch.int64(n).float64(eps).run(kernels.get(ANY, dtype, out.dtype()), rows, walking(n));
      }
    }
  }

  private static void byRows(Launch launch, CudaKernel kernel, long rows, int threads) {
    int each = threads == 32 ? ROWS : 1;
    launch.run(kernel, (rows + each - 1) / each, 1, 1, threads, each, 0);
  }

  private static int walking(int n) {
    return n <= 256 ? 64 : n <= 2048 ? 256 : 1024;
  }

  /** The gradient of the input. */
  public static void backward(
      boolean layer,
      StridedTensor g,
      StridedTensor in,
      @Nullable StridedTensor weight,
      StridedTensor out,
      int n,
      double eps) {
    if (out.numel() == 0) {
      return;
    }
    KernelTable kernels = layer ? LAYER : RMS;
    long rows = out.numel() / n;
    DType dtype = out.dtype();
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      long h = temporaries.contiguous(g).dataAddress();
      long x = temporaries.contiguous(in).dataAddress();
      long w = address(row(temporaries, weight));
      long y = out.dataAddress();
      int threads = threads(dtype, n, h | x | w | y);
      Launch launch =
          Launch.on(out.device().index()).int64(h).int64(x).int64(w).int64(y).int64(rows);
      if (threads > 0) {
        launch.int32(n).float64(eps);
        byRows(launch, kernels.get(BACKWARD_WIDE, dtype, g.dtype()), rows, threads);
      } else {
        launch
            .int64(n)
            .float64(eps)
            .run(kernels.get(BACKWARD_ANY, dtype, g.dtype()), rows, walking(n));
      }
    }
  }

  /** The gradient of the weight: the sum over rows of g times the normalised row. */
  public static void weightBackward(
      boolean layer, StridedTensor g, StridedTensor in, StridedTensor out, int n, double eps) {
    if (n == 0) {
      return;
    }
    KernelTable kernels = layer ? LAYER : RMS;
    long rows = in.numel() / n;
    if (rows == 0) {
      CudaFills.fill(out, 0);
      return;
    }
    DType dtype = out.dtype();
    int device = out.device().index();
    DType wide = dtype == DType.FLOAT64 ? DType.FLOAT64 : DType.FLOAT32;
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      long h = temporaries.contiguous(g).dataAddress();
      long x = temporaries.contiguous(in).dataAddress();
      int threads = threads(dtype, n, h | x);
      // One partial sum for each block; enough of them to fill the device.
      int most = 2 * Cuda.properties(device).multiprocessors();
      int count;
      StridedTensor partial;
      if (threads > 0) {
        int each = threads == 32 ? ROWS : 1;
        count = (int) Math.min(most, (rows + each - 1) / each);
        partial = temporaries.empty(wide, count, n);
        Launch.on(device)
            .int64(h)
            .int64(x)
            .int64(partial.dataAddress())
            .int64(rows)
            .int32(n)
            .float64(eps)
            .run(kernels.get(WEIGHT_WIDE, dtype, g.dtype()), count, 1, 1, threads, each, 0);
      } else {
        StridedTensor moments = temporaries.empty(wide, rows, 2);
        Launch.on(device)
            .int64(x)
            .int64(moments.dataAddress())
            .int64(rows)
            .int64(n)
            .float64(eps)
            .run(kernels.get(MOMENTS, dtype, g.dtype()), rows, walking(n));
        count = (int) Math.min(64, rows);
        partial = temporaries.empty(wide, count, n);
        Launch.on(device)
            .int64(h)
            .int64(x)
            .int64(moments.dataAddress())
            .int64(partial.dataAddress())
            .int64(rows)
            .int64(n)
            .run(kernels.get(WEIGHT_ANY, dtype, g.dtype()), (n + 127) / 128, count, 1, 128, 1, 0);
      }
      Launch.on(device)
          .int64(partial.dataAddress())
          .int64(out.dataAddress())
          .int32(count)
          .int64(n)
          .run(
              kernels.get(WEIGHT_SUM, dtype, g.dtype()),
              (n + COLUMNS - 1) / COLUMNS,
              1,
              1,
              COLUMNS,
              8,
              0);
    }
  }
}
