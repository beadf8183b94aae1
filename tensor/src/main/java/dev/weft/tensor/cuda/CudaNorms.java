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
  private static final Kernels RMS = new Kernels("LAYER=0");
  private static final Kernels LAYER = new Kernels("LAYER=1");

  private static final class Kernels {
    final KernelsByDType wide;
    final KernelsByDType any;
    final KernelsByDType backwardWide;
    final KernelsByDType backwardAny;
    final KernelsByDType weightWide;
    final KernelsByDType weightSum;
    final KernelsByDType moments;
    final KernelsByDType weightAny;

    Kernels(String define) {
      wide = new KernelsByDType("norm.cu", "norm_wide", define);
      any = new KernelsByDType("norm.cu", "norm_any", define);
      backwardWide = new KernelsByDType("norm.cu", "norm_backward_wide", define);
      backwardAny = new KernelsByDType("norm.cu", "norm_backward_any", define);
      weightWide = new KernelsByDType("norm.cu", "norm_weight_wide", define);
      weightSum = new KernelsByDType("norm.cu", "norm_weight_sum", define);
      moments = new KernelsByDType("norm.cu", "norm_moments", define);
      weightAny = new KernelsByDType("norm.cu", "norm_weight_any", define);
    }
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
    Kernels kernels = layer ? LAYER : RMS;
    long rows = out.numel() / n;
    DType dtype = out.dtype();
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
        byRows(launch, kernels.wide.of(dtype), rows, threads);
      } else {
        launch.int64(n).float64(eps).run(kernels.any.of(dtype), rows, walking(n));
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
    Kernels kernels = layer ? LAYER : RMS;
    long rows = out.numel() / n;
    DType dtype = out.dtype();
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      long h = temporaries.contiguous(g, dtype).dataAddress();
      long x = temporaries.contiguous(in).dataAddress();
      long w = address(row(temporaries, weight));
      long y = out.dataAddress();
      int threads = threads(dtype, n, h | x | w | y);
      Launch launch =
          Launch.on(out.device().index()).int64(h).int64(x).int64(w).int64(y).int64(rows);
      if (threads > 0) {
        launch.int32(n).float64(eps);
        byRows(launch, kernels.backwardWide.of(dtype), rows, threads);
      } else {
        launch.int64(n).float64(eps).run(kernels.backwardAny.of(dtype), rows, walking(n));
      }
    }
  }

  /** The gradient of the weight: the sum over rows of g times the normalised row. */
  public static void weightBackward(
      boolean layer, StridedTensor g, StridedTensor in, StridedTensor out, int n, double eps) {
    if (n == 0) {
      return;
    }
    Kernels kernels = layer ? LAYER : RMS;
    long rows = in.numel() / n;
    if (rows == 0) {
      CudaFills.fill(out, 0);
      return;
    }
    DType dtype = out.dtype();
    int device = out.device().index();
    DType wide = dtype == DType.FLOAT64 ? DType.FLOAT64 : DType.FLOAT32;
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      long h = temporaries.contiguous(g, dtype).dataAddress();
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
            .run(kernels.weightWide.of(dtype), count, 1, 1, threads, each, 0);
      } else {
        StridedTensor moments = temporaries.empty(wide, rows, 2);
        Launch.on(device)
            .int64(x)
            .int64(moments.dataAddress())
            .int64(rows)
            .int64(n)
            .float64(eps)
            .run(kernels.moments.of(dtype), rows, walking(n));
        count = (int) Math.min(64, rows);
        partial = temporaries.empty(wide, count, n);
        Launch.on(device)
            .int64(h)
            .int64(x)
            .int64(moments.dataAddress())
            .int64(partial.dataAddress())
            .int64(rows)
            .int64(n)
            .run(kernels.weightAny.of(dtype), (n + 127) / 128, count, 1, 128, 1, 0);
      }
      Launch.on(device)
          .int64(partial.dataAddress())
          .int64(out.dataAddress())
          .int32(count)
          .int64(n)
          .run(kernels.weightSum.of(dtype), (n + COLUMNS - 1) / COLUMNS, 1, 1, COLUMNS, 8, 0);
    }
  }
}
