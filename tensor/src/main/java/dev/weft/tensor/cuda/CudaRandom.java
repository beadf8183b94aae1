package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.cpu.RandomKernels.Source;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Random values, the same bits that the CPU makes; normal ones to the last place of the device's
 * logarithm and cosine. Any thread.
 */
public final class CudaRandom {
  private static final int THREADS = 256;
  private static final KernelTable UNIFORM = table("Uniform");
  private static final KernelTable NORMAL = table("Normal");
  private static final KernelTable INTEGERS = table("Integers");
  private static final KernelTable DROPOUT = table("Dropout");

  private CudaRandom() {}

  private static KernelTable table(String kind) {
    return new KernelTable(
        "random.cu",
        (a, b) -> new String[] {"TYPE=" + CudaTypes.of(a), "KIND=" + kind},
        "random_values");
  }

  /** Uniform in [low, high). */
  public static void uniform(StridedTensor out, Source s, double low, double high) {
    run(UNIFORM, out, out, s, low, high - low, 0, 1);
  }

  /** Normal of a mean and standard deviation. */
  public static void normal(StridedTensor out, Source s, double mean, double std) {
    run(NORMAL, out, out, s, mean, std, 0, 1);
  }

  /** Integers in [low, high). */
  public static void integers(StridedTensor out, Source s, long low, long high) {
    run(INTEGERS, out, out, s, 0, 0, low, high - low);
  }

  /** x / (1 - p) with probability 1 - p, else 0. */
  public static void dropout(StridedTensor in, StridedTensor out, Source s, double p) {
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      run(DROPOUT, temporaries.contiguous(in), out, s, p, p == 1 ? 0 : 1 / (1 - p), 0, 1);
    }
  }

  private static void run(
      KernelTable kernels,
      StridedTensor in,
      StridedTensor out,
      Source s,
      double a,
      double b,
      long c,
      long d) {
    long n = out.numel();
    if (n == 0) {
      return;
    }
    CudaMoves.requireNoOverlap(out);
    int device = out.device().index();
    long @Nullable [] global = s.globalShape();
    long[] whole = global == null ? out.shape() : global;
    long[] wholeStrides = Shapes.contiguousStrides(whole);
    long @Nullable [] start = s.start();
    long first = 0;
    for (int i = 0; start != null && i < start.length; i++) {
      first += start[i] * wholeStrides[i];
    }
    boolean aligned = out.isContiguous() && Arrays.equals(whole, out.shape());
    Geometry g = Geometry.of(out.shape(), new long[][] {out.strides(), wholeStrides});
    long source = in.dataAddress();
    DType dtype = out.dtype();
    Launch launch =
        Launch.on(device)
            .int64(out.dataAddress())
            .int64(source)
            .int64(n)
            .int64(s.seed())
            .int64(s.offset())
            .float64(a)
            .float64(b)
            .int64(c)
            .int64(d);
    g.addSizes(launch);
    g.addStrides(launch, 0);
    g.addStrides(launch, 1);
    launch
        .int64(first)
        .int32(g.ndim)
        .int32(aligned ? 1 : 0)
        .run(
            kernels.get(0, dtype, dtype),
            Grids.blocks(device, aligned ? (n + 1) / 2 : n, THREADS),
            THREADS);
  }
}
