package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.cpu.OptimizerKernels;
import org.jspecify.annotations.Nullable;

/** Parameter updates on a GPU: many tensors in one launch. */
public final class CudaUpdates {
  private static final int THREADS = 256;
  // As in update.cu.
  private static final int CHUNK = 16384;
  private static final int TENSORS = 88;
  private static final @Nullable CudaKernel[] ADAMW =
      new CudaKernel[CudaTypes.COUNT * CudaTypes.COUNT];
  private static final ThreadLocal<TensorTable> TABLE =
      ThreadLocal.withInitial(() -> new TensorTable(4, TENSORS, CHUNK));

  private CudaUpdates() {}

  private static CudaKernel adamw(DType parameter, DType gradient) {
    int at = CudaTypes.index(parameter) * CudaTypes.COUNT + CudaTypes.index(gradient);
    CudaKernel k = ADAMW[at];
    if (k == null) {
      k =
          KernelModule.of(
                  "update.cu", "P=" + CudaTypes.of(parameter), "G=" + CudaTypes.of(gradient))
              .kernel("adamw");
      ADAMW[at] = k;
    }
    return k;
  }

  /**
   * One AdamW step on many parameters.
   *
   * @param in parameter, gradient, mean and mean square of the first, of the second, ...; all on
   *     one device
   */
  public static void adamw(StridedTensor[] in, OptimizerKernels.AdamStep s) {
    TensorTable table = TABLE.get();
    table.clear();
    DType parameters = in[0].dtype();
    DType gradients = in[1].dtype();
    int device = in[0].device().index();
    try (CudaTemporaries temporaries = new CudaTemporaries(in[0].device())) {
      for (int i = 0; i < in.length; i += 4) {
        StridedTensor p = in[i];
        StridedTensor g = in[i + 1];
        long n = p.numel();
        if (n == 0) {
          continue;
        }
        if (p.dtype() != parameters || g.dtype() != gradients || table.isFullFor(n)) {
          launch(table, device, adamw(parameters, gradients), s);
          parameters = p.dtype();
          gradients = g.dtype();
        }
        StridedTensor x = temporaries.contiguous(p);
        StridedTensor m = temporaries.contiguous(in[i + 2], p.dtype());
        StridedTensor v = temporaries.contiguous(in[i + 3], p.dtype());
        table.add(n);
        table.address(0, x.dataAddress());
        table.address(1, temporaries.contiguous(g).dataAddress());
        table.address(2, m.dataAddress());
        table.address(3, v.dataAddress());
        if (x != p || m != in[i + 2] || v != in[i + 3]) {
          launch(table, device, adamw(parameters, gradients), s);
          writeBack(x, p);
          writeBack(m, in[i + 2]);
          writeBack(v, in[i + 3]);
        }
      }
      launch(table, device, adamw(parameters, gradients), s);
    }
  }

  private static void writeBack(StridedTensor from, StridedTensor to) {
    if (from != to) {
      CudaCopies.copy(from, to);
    }
  }

  private static void launch(
      TensorTable table, int device, CudaKernel kernel, OptimizerKernels.AdamStep s) {
    if (table.isEmpty()) {
      return;
    }
    table
        .addTo(Launch.on(device))
        .float64(s.decay())
        .float64(s.beta1())
        .float64(s.beta2())
        .float64(s.stepSize())
        .float64(s.correction())
        .float64(s.eps())
        .run(kernel, table.chunks(), THREADS);
    table.clear();
  }
}
