package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;

/** The sum of squares of many tensors, and their scaling, on a GPU in a few launches. */
public final class CudaForeach {
  private static final int THREADS = 256;
  // As in foreach.cu.
  private static final int CHUNK = 32768;
  private static final int TENSORS = 192;
  private static final KernelsByDType SQUARES = new KernelsByDType("foreach.cu", "foreach_squares");
  private static final KernelsByDType TOTAL = new KernelsByDType("foreach.cu", "foreach_total");
  private static final KernelsByDType CLIP = new KernelsByDType("foreach.cu", "foreach_clip");
  private static final ThreadLocal<TensorTable> TABLE =
      ThreadLocal.withInitial(() -> new TensorTable(1, TENSORS, CHUNK));

  private CudaForeach() {}

  /** out = the sum of all squares; out is float64 and has no dimensions. */
  public static void squares(StridedTensor[] in, StridedTensor out) {
    TensorTable table = TABLE.get();
    table.clear();
    boolean more = false;
    DType dtype = in[0].dtype();
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      for (StridedTensor t : in) {
        if (t.numel() == 0) {
          continue;
        }
        if (t.dtype() != dtype || table.isFullFor(t.numel())) {
          more = squares(temporaries, table, dtype, out, more);
          dtype = t.dtype();
        }
        table.add(t.numel());
        table.address(0, temporaries.contiguous(t).dataAddress());
      }
      more = squares(temporaries, table, dtype, out, more);
      if (!more) {
        CudaFills.fill(out, 0);
      }
    }
  }

  private static boolean squares(
      CudaTemporaries temporaries,
      TensorTable table,
      DType dtype,
      StridedTensor out,
      boolean more) {
    if (table.isEmpty()) {
      return more;
    }
    int device = out.device().index();
    DType wide = dtype == DType.FLOAT64 ? DType.FLOAT64 : DType.FLOAT32;
    long partial = temporaries.empty(wide, table.chunks()).dataAddress();
    table.addTo(Launch.on(device)).int64(partial).run(SQUARES.of(dtype), table.chunks(), THREADS);
    Launch.on(device)
        .int64(partial)
        .int64(out.dataAddress())
        .int32((int) table.chunks())
        .int32(more ? 1 : 0)
        .run(TOTAL.of(dtype), 1, 1024);
    table.clear();
    return true;
  }

  /**
   * Multiplies tensors by min(1, most / (norm + 1e-6)) for the norm whose square {@code square}
   * holds; nothing is read on the host.
   *
   * @param in the tensors, then {@code square}, which is float64 and has no dimensions
   */
  public static void clip(StridedTensor[] in, double most) {
    TensorTable table = TABLE.get();
    table.clear();
    StridedTensor square = in[in.length - 1];
    square.storage().await();
    int device = square.device().index();
    DType dtype = in[0].dtype();
    try (CudaTemporaries temporaries = new CudaTemporaries(square.device())) {
      for (int i = 0; i < in.length - 1; i++) {
        StridedTensor t = in[i];
        if (t.numel() == 0) {
          continue;
        }
        if (t.dtype() != dtype || table.isFullFor(t.numel())) {
          clip(table, dtype, device, square, most);
          dtype = t.dtype();
        }
        StridedTensor x = temporaries.contiguous(t);
        table.add(t.numel());
        table.address(0, x.dataAddress());
        if (x != t) {
          clip(table, dtype, device, square, most);
          CudaCopies.copy(x, t);
        }
      }
      clip(table, dtype, device, square, most);
    }
  }

  private static void clip(
      TensorTable table, DType dtype, int device, StridedTensor square, double most) {
    if (table.isEmpty()) {
      return;
    }
    table
        .addTo(Launch.on(device))
        .int64(square.dataAddress())
        .float64(most)
        .run(CLIP.of(dtype), table.chunks(), THREADS);
    table.clear();
  }
}
