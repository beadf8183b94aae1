package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;

/** Running sums, and the gradient of products. Any thread. */
public final class CudaScans {
  private static final int THREADS = 256;
  private static final int ROWS = 0;
  private static final int COLUMNS = 1;
  private static final KernelTable SCANS =
      new KernelTable(
          "scan.cu",
          (in, out) ->
              new String[] {
                "IN=" + CudaTypes.of(in),
                "OUT=" + CudaTypes.of(out),
                "ACC=" + CudaTypes.accumulator(out)
              },
          "scan_rows",
          "scan_columns");
  private static final KernelTable PRODUCTS =
      new KernelTable(
          "prod_backward.cu",
          (a, b) -> new String[] {"TYPE=" + CudaTypes.of(a), "ACC=" + CudaTypes.accumulator(a)},
          "prod_backward");

  private CudaScans() {}

  /** A tensor's rows along a dimension: the space of all others, and that one's stride. */
  private static Geometry others(StridedTensor t, int dim) {
    int n = Math.max(0, t.ndim() - 1);
    long[] shape = new long[n];
    long[] strides = new long[n];
    int at = 0;
    for (int d = 0; d < t.ndim(); d++) {
      if (d != dim) {
        shape[at] = t.shape()[d];
        strides[at++] = t.strides()[d];
      }
    }
    return Geometry.of(shape, new long[][] {strides});
  }

  private static void addRows(Launch launch, Geometry g) {
    launch.align(8);
    g.addSizes(launch);
    g.addStrides(launch, 0);
    launch.int32(g.ndim).align(8);
  }

  /** Running sums along a dimension, from its end where {@code reverse}. */
  public static void cumsum(StridedTensor in, StridedTensor out, int dim, boolean reverse) {
    if (out.numel() == 0) {
      return;
    }
    long n = in.ndim() == 0 ? 1 : in.shape()[dim];
    long stride = in.ndim() == 0 ? 1 : in.strides()[dim];
    long outStride = out.ndim() == 0 ? 1 : out.strides()[dim];
    Geometry from = others(in, dim);
    Geometry to = others(out, dim);
    long rows = from.numel;
    boolean columns = n <= 16 || (from.ndim > 0 && from.strides[0][0] < stride && rows >= THREADS);
    long source = in.dataAddress();
    Launch launch = Launch.on(out.device().index()).int64(source).int64(out.dataAddress());
    if (columns) {
      launch.int64(rows);
    }
    launch.int64(n).int64(stride).int64(outStride).int32(reverse ? 1 : 0);
    addRows(launch, from);
    addRows(launch, to);
    if (columns) {
      launch.run(
          SCANS.get(COLUMNS, in.dtype(), out.dtype()), (rows + THREADS - 1) / THREADS, THREADS);
    } else {
      launch.run(SCANS.get(ROWS, in.dtype(), out.dtype()), rows, THREADS);
    }
  }

  /** The gradient of the product over dimensions: g times the product of all other elements. */
  public static void prodBackward(
      StridedTensor g, StridedTensor in, StridedTensor out, int[] dims) {
    if (out.numel() == 0) {
      return;
    }
    boolean[] reduced = new boolean[in.ndim()];
    for (int d : dims) {
      reduced[d] = true;
    }
    Geometry kept = pick(in, out, reduced, in.ndim() - dims.length, false);
    Geometry elements = pick(in, out, reduced, dims.length, true);
    Geometry gs = Geometry.of(g.shape(), g);
    boolean wide = in.dtype() == DType.FLOAT64;
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      StridedTensor same = g.dtype() == in.dtype() ? g : temporaries.packed(g, in.dtype());
      if (same != g) {
        gs = Geometry.of(g.shape(), same);
      }
      StridedTensor before =
          temporaries.empty(
              wide ? DType.FLOAT64 : in.dtype().isFloatingPoint() ? DType.FLOAT32 : DType.INT64,
              out.numel());
      long gradient = same.dataAddress();
      long source = in.dataAddress();
      Launch launch =
          Launch.on(out.device().index())
              .int64(gradient)
              .int64(source)
              .int64(out.dataAddress())
              .int64(before.dataAddress())
              .int64(kept.numel)
              .int64(elements.numel)
              .int32(gs.ndim)
              .int32(kept.ndim)
              .int32(elements.ndim)
              .align(8);
      gs.addSizes(launch);
      gs.addStrides(launch, 0);
      kept.addSizes(launch);
      kept.addStrides(launch, 0);
      kept.addStrides(launch, 1);
      elements.addSizes(launch);
      elements.addStrides(launch, 0);
      elements.addStrides(launch, 1);
      launch.run(
          PRODUCTS.get(0, in.dtype(), in.dtype()), (kept.numel + THREADS - 1) / THREADS, THREADS);
    }
  }

  private static Geometry pick(
      StridedTensor a, StridedTensor b, boolean[] reduced, int count, boolean which) {
    long[] shape = new long[count];
    long[][] strides = new long[2][count];
    int at = 0;
    for (int d = 0; d < reduced.length; d++) {
      if (reduced[d] == which) {
        shape[at] = a.shape()[d];
        strides[0][at] = a.strides()[d];
        strides[1][at++] = b.strides()[d];
      }
    }
    return Geometry.of(shape, strides);
  }
}
