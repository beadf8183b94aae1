package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;

/** Rotary position embedding of neighbouring pairs on a GPU. */
public final class CudaRope {
  private static final int THREADS = 256;
  private static final KernelsByDType WIDE = new KernelsByDType("rope.cu", "rope_wide");
  private static final KernelsByDType SINGLE = new KernelsByDType("rope.cu", "rope_single");

  private CudaRope() {}

  /**
   * Rotates the pairs of the last dimension by the angles whose cosines and sines are given as
   * [positions, pairs]; positions run along {@code dim}.
   */
  public static void rotate(
      StridedTensor in,
      StridedTensor cos,
      StridedTensor sin,
      StridedTensor out,
      int dim,
      boolean inverse) {
    if (out.numel() == 0) {
      return;
    }
    DType dtype = out.dtype();
    DType wide = dtype == DType.FLOAT64 ? DType.FLOAT64 : DType.FLOAT32;
    int half = Math.toIntExact(in.size(-1) / 2);
    long inner = 1;
    for (int d = dim + 1; d < in.ndim() - 1; d++) {
      inner *= in.shape()[d];
    }
    int device = out.device().index();
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      long x = temporaries.contiguous(in).dataAddress();
      long c = temporaries.contiguous(cos, wide).dataAddress();
      long s = temporaries.contiguous(sin, wide).dataAddress();
      long y = out.dataAddress();
      int pairs = 8 / dtype.byteSize();
      boolean vectors = half % pairs == 0 && (x | c | s | y) % 16 == 0;
      long items = out.numel() / 2 / (vectors ? pairs : 1);
      Launch launch =
          Launch.on(device)
              .int64(x)
              .int64(c)
              .int64(s)
              .int64(y)
              .int64(items)
              .int32(half)
              .int32(Math.toIntExact(in.shape()[dim]))
              .int32(Math.toIntExact(inner));
      if (wide == DType.FLOAT64) {
        launch.float64(inverse ? -1 : 1);
      } else {
        launch.float32(inverse ? -1 : 1);
      }
      launch.run(
          (vectors ? WIDE : SINGLE).of(dtype), Grids.blocks(device, items, THREADS), THREADS);
    }
  }
}
