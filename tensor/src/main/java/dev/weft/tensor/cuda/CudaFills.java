package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;

/** Fills tensors with one value. Any thread; in the order of the device's current stream. */
public final class CudaFills {
  private static final int THREADS = 256;
  private static final int DENSE = 0;
  private static final int STRIDED = 1;
  private static final int ARANGE = 2;
  private static final KernelTable KERNELS =
      new KernelTable(
          "fill.cu",
          (a, b) -> new String[] {"TYPE=" + CudaTypes.of(a)},
          "fill_dense",
          "fill_strided",
          "arange");

  private CudaFills() {}

  /** Sets all elements, of any strides, to a value, converted as a cast would. */
  public static void fill(StridedTensor t, Number value) {
    if (t.numel() == 0) {
      return;
    }
    if (t.isContiguous() && isZero(value)) {
      CudaCopies.zero(t);
      return;
    }
    int device = t.device().index();
    Geometry g = Geometry.of(t.shape(), t);
    long address = t.dataAddress();
    Launch launch = Launch.on(device).int64(address).int64(g.numel);
    if (t.dtype().isFloatingPoint()) {
      launch.float64(value.doubleValue()).int64(0);
    } else {
      boolean whole = value instanceof Long || value instanceof Integer;
      long bits = whole ? value.longValue() : (long) value.doubleValue();
      if (t.dtype() == DType.BOOL) {
        bits = value.doubleValue() != 0 ? 1 : 0;
      }
      launch.float64(0).int64(bits);
    }
    launch.int32(g.ndim).align(8);
    g.addSizes(launch);
    g.addStrides(launch, 0);
    launch.run(
        KERNELS.get(g.isDense(0) ? DENSE : STRIDED, t.dtype(), t.dtype()),
        Grids.blocks(device, g.numel, THREADS),
        THREADS);
  }

  /** Sets a vector to start, start + step, ...; exact in integers. */
  public static void arange(StridedTensor t, Number start, Number step) {
    if (t.numel() == 0) {
      return;
    }
    int device = t.device().index();
    Geometry g = Geometry.of(t.shape(), t);
    long address = t.dataAddress();
    Launch launch =
        Launch.on(device)
            .int64(address)
            .int64(g.numel)
            .float64(start.doubleValue())
            .float64(step.doubleValue())
            .int64(start.longValue())
            .int64(step.longValue())
            .int32(g.ndim)
            .align(8);
    g.addSizes(launch);
    g.addStrides(launch, 0);
    launch.run(
        KERNELS.get(ARANGE, t.dtype(), t.dtype()), Grids.blocks(device, g.numel, THREADS), THREADS);
  }

  private static boolean isZero(Number value) {
    // Not -0.0, which has a bit set.
    return Double.doubleToRawLongBits(value.doubleValue()) == 0;
  }
}
