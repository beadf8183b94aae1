package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.cpu.LossKernels;
import org.jspecify.annotations.Nullable;

/**
 * Cross-entropy over class indices and the negative log-likelihood on a GPU, with their gradients.
 * No probabilities are kept: the gradient computes them again. A target that is no class gives NaN
 * and is reported at the next synchronisation ({@link CudaFaults}).
 */
public final class CudaLosses {
  private static final int SHORT = 1024;
  private static final int ROWS = 4;
  private static final int THREADS = 256;
  private static final long CROSS_ENTROPY = CudaFaults.code("cross_entropy");
  private static final long NLL = CudaFaults.code("nll_loss");
  private static final @Nullable Kernels[] KERNELS = new Kernels[CudaTypes.COUNT * CudaTypes.COUNT];

  /** The kernels for logits of one dtype and losses of another. */
  private static final class Kernels {
    final CudaKernel crossEntropyShort;
    final CudaKernel crossEntropyLong;
    final CudaKernel nll;
    final CudaKernel total;
    final CudaKernel each;
    final CudaKernel count;
    final CudaKernel backwardShort;
    final CudaKernel backwardLong;
    final CudaKernel nllBackward;

    private Kernels(DType in, DType loss) {
      KernelModule module =
          KernelModule.of("loss.cu", "T=" + CudaTypes.of(in), "R=" + CudaTypes.of(loss));
      crossEntropyShort = module.kernel("cross_entropy_short");
      crossEntropyLong = module.kernel("cross_entropy_long");
      nll = module.kernel("nll");
      total = module.kernel("loss_total");
      each = module.kernel("loss_each");
      count = module.kernel("loss_count");
      backwardShort = module.kernel("cross_entropy_backward_short");
      backwardLong = module.kernel("cross_entropy_backward_long");
      nllBackward = module.kernel("nll_backward");
    }

    static Kernels of(DType in, DType loss) {
      int at = CudaTypes.index(in) * CudaTypes.COUNT + CudaTypes.index(loss);
      Kernels k = KERNELS[at];
      if (k == null) {
        k = new Kernels(in, loss);
        KERNELS[at] = k;
      }
      return k;
    }
  }

  private CudaLosses() {}

  private static DType wide(StridedTensor t) {
    return t.dtype() == DType.FLOAT64 ? DType.FLOAT64 : DType.FLOAT32;
  }

  private static int classDim(StridedTensor in) {
    return in.ndim() == 1 ? 0 : 1;
  }

  private static long inner(StridedTensor in) {
    return CudaSoftmax.inner(in, classDim(in));
  }

  private static void each(
      Launch launch, CudaKernel shorter, CudaKernel longer, long rows, long classes) {
    if (classes <= SHORT) {
      launch.run(shorter, (rows + ROWS - 1) / ROWS, 1, 1, 32, ROWS, 0);
    } else {
      launch.run(longer, rows, CudaSoftmax.threads(classes));
    }
  }

  /** The loss of logits [N, C, ...] or [C] for class indices [N, ...] or []. */
  public static void crossEntropy(
      StridedTensor in, StridedTensor target, StridedTensor out, LossKernels.Options o) {
    forward(in, target, out, o, true);
  }

  /** The loss of log-probabilities; the layout is that of {@link #crossEntropy}. */
  public static void nll(
      StridedTensor in, StridedTensor target, StridedTensor out, LossKernels.Options o) {
    forward(in, target, out, o, false);
  }

  private static void forward(
      StridedTensor in,
      StridedTensor target,
      StridedTensor out,
      LossKernels.Options o,
      boolean crossEntropy) {
    long rows = target.numel();
    boolean none = o.reduction().equals("none");
    if (rows == 0 && none) {
      return;
    }
    long classes = in.shape()[classDim(in)];
    int device = out.device().index();
    Kernels kernels = Kernels.of(in.dtype(), out.dtype());
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      StridedTensor losses = temporaries.empty(wide(in), rows);
      StridedTensor targets = temporaries.contiguous(target, DType.INT64);
      target.storage().await();
      if (rows > 0) {
        long x = temporaries.contiguous(in).dataAddress();
        long fault = CudaFaults.record(device);
        Launch launch =
            Launch.on(device)
                .int64(x)
                .int64(targets.dataAddress())
                .int64(losses.dataAddress())
                .int64(rows)
                .int64(classes)
                .int64(inner(in))
                .int64(o.ignore());
        if (crossEntropy) {
          launch.float64(o.smoothing()).int64(fault).int64(CROSS_ENTROPY);
          each(launch, kernels.crossEntropyShort, kernels.crossEntropyLong, rows, classes);
        } else {
          launch.int64(fault).int64(NLL).run(kernels.nll, (rows + THREADS - 1) / THREADS, THREADS);
        }
      }
      if (none) {
        Launch.on(device)
            .int64(losses.dataAddress())
            .int64(out.dataAddress())
            .int64(rows)
            .run(kernels.each, (rows + THREADS - 1) / THREADS, THREADS);
      } else {
        Launch.on(device)
            .int64(losses.dataAddress())
            .int64(targets.dataAddress())
            .int64(out.dataAddress())
            .int64(rows)
            .int64(o.ignore())
            .int32(o.reduction().equals("mean") ? 1 : 0)
            .run(kernels.total, 1, 1024);
      }
    }
  }

  /** The gradient of the logits. */
  public static void crossEntropyBackward(
      StridedTensor g,
      StridedTensor in,
      StridedTensor target,
      StridedTensor out,
      LossKernels.Options o) {
    backward(g, in, target, out, o, true);
  }

  /** The gradient of the log-probabilities. */
  public static void nllBackward(
      StridedTensor g,
      StridedTensor in,
      StridedTensor target,
      StridedTensor out,
      LossKernels.Options o) {
    backward(g, in, target, out, o, false);
  }

  private static void backward(
      StridedTensor g,
      StridedTensor in,
      StridedTensor target,
      StridedTensor out,
      LossKernels.Options o,
      boolean crossEntropy) {
    if (out.numel() == 0) {
      return;
    }
    long rows = target.numel();
    long classes = in.shape()[classDim(in)];
    int device = out.device().index();
    Kernels kernels = Kernels.of(in.dtype(), g.dtype());
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      StridedTensor targets = temporaries.contiguous(target, DType.INT64);
      target.storage().await();
      boolean one = g.ndim() == 0;
      long gradients = one ? g.dataAddress() : temporaries.contiguous(g).dataAddress();
      int step = one ? 0 : 1;
      long count = 0;
      if (o.reduction().equals("mean")) {
        StridedTensor counted = temporaries.empty(DType.FLOAT64);
        count = counted.dataAddress();
        Launch.on(device)
            .int64(targets.dataAddress())
            .int64(count)
            .int64(rows)
            .int64(o.ignore())
            .run(kernels.count, 1, 1024);
      }
      long fault = CudaFaults.record(device);
      if (crossEntropy) {
        long x = temporaries.contiguous(in).dataAddress();
        Launch launch =
            Launch.on(device)
                .int64(gradients)
                .int32(step)
                .int64(x)
                .int64(targets.dataAddress())
                .int64(count)
                .int64(out.dataAddress())
                .int64(rows)
                .int64(classes)
                .int64(inner(in))
                .int64(o.ignore())
                .float64(o.smoothing())
                .int64(fault)
                .int64(CROSS_ENTROPY);
        each(launch, kernels.backwardShort, kernels.backwardLong, rows, classes);
      } else {
        Launch.on(device)
            .int64(gradients)
            .int32(step)
            .int64(targets.dataAddress())
            .int64(count)
            .int64(out.dataAddress())
            .int64(out.numel())
            .int64(classes)
            .int64(inner(in))
            .int64(o.ignore())
            .int64(fault)
            .int64(NLL)
            .run(kernels.nllBackward, Grids.blocks(device, out.numel(), THREADS), THREADS);
      }
    }
  }
}
