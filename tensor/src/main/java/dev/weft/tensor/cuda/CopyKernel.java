package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;

/** Copies within a device that change strides or dtype. */
final class CopyKernel {
  private static final int THREADS = 256;
  private static final int TILE = 32;
  private static final int TILE_ROWS = 8;

  private CopyKernel() {}

  static KernelModule module(DType from, DType to) {
    return KernelModule.of("copy.cu", "FROM=" + CudaTypes.of(from), "TO=" + CudaTypes.of(to));
  }

  /** Copies; equal shapes, one device, at least one element. */
  static void run(StridedTensor from, StridedTensor to) {
    KernelModule module = module(from.dtype(), to.dtype());
    Geometry g = Geometry.of(to.shape(), to, from);
    int device = to.device().index();
    long source = from.dataAddress();
    long target = to.dataAddress();
    Launch launch = Launch.on(device);
    if (g.allDense()) {
      boolean four =
          source % (4L * from.dtype().byteSize()) == 0
              && target % (4L * to.dtype().byteSize()) == 0;
      launch
          .int64(source)
          .int64(target)
          .int64(g.numel)
          .run(
              module.kernel(four ? "copy_dense" : "copy_single"),
              Grids.blocks(device, four ? (g.numel + 3) / 4 : g.numel, THREADS),
              THREADS);
      return;
    }
    if (transposed(g) && fits(g)) {
      long rows = g.sizes[1];
      long columns = g.sizes[0];
      launch
          .int64(source)
          .int64(target)
          .int64(rows)
          .int64(columns)
          .int64(g.strides[1][0])
          .int64(g.strides[0][1])
          .int64(g.strides[1][2])
          .int64(g.strides[0][2])
          .run(
              module.kernel("copy_transposed"),
              (columns + TILE - 1) / TILE,
              (int) ((rows + TILE - 1) / TILE),
              g.ndim == 3 ? (int) g.sizes[2] : 1,
              TILE,
              TILE_ROWS,
              0);
      return;
    }
    strided(module, g, device, source, target);
  }

  /** Copies in a geometry whose tensor 0 is the target; the source's strides may be negative. */
  static void strided(KernelModule module, Geometry g, int device, long source, long target) {
    Launch launch = Launch.on(device).int64(source).int64(target).int64(g.numel).int32(g.ndim);
    g.addSizes(launch.align(8));
    g.addStrides(launch, 1);
    g.addStrides(launch, 0);
    launch.run(module.kernel("copy_strided"), Grids.blocks(device, g.numel, THREADS), THREADS);
  }

  /** The target is dense in its inner dimension, the source in the next. */
  private static boolean transposed(Geometry g) {
    return (g.ndim == 2 || g.ndim == 3)
        && g.strides[0][0] == 1
        && g.strides[1][1] == 1
        && g.sizes[0] >= TILE_ROWS
        && g.sizes[1] >= TILE_ROWS;
  }

  private static boolean fits(Geometry g) {
    return (g.sizes[1] + TILE - 1) / TILE <= 65535 && (g.ndim == 2 || g.sizes[2] <= 65535);
  }
}
