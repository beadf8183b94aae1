package dev.weft.tensor.cuda;

import dev.weft.tensor.StridedTensor;

/** silu(a) b and its gradients on a GPU. */
public final class CudaSwiglu {
  private static final int THREADS = 256;
  private static final KernelsByDType WIDE = new KernelsByDType("swiglu.cu", "swiglu_wide");
  private static final KernelsByDType SINGLE = new KernelsByDType("swiglu.cu", "swiglu_single");
  private static final KernelsByDType BACKWARD_WIDE =
      new KernelsByDType("swiglu.cu", "swiglu_backward_wide");
  private static final KernelsByDType BACKWARD_SINGLE =
      new KernelsByDType("swiglu.cu", "swiglu_backward_single");

  private CudaSwiglu() {}

  /** out = silu(a) b; equal shapes. */
  public static void forward(StridedTensor a, StridedTensor b, StridedTensor out) {
    if (out.numel() == 0) {
      return;
    }
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      long x = temporaries.contiguous(a).dataAddress();
      long y = temporaries.contiguous(b).dataAddress();
      long to = out.dataAddress();
      Launch launch =
          Launch.on(out.device().index()).int64(x).int64(y).int64(to).int64(out.numel());
      run(launch, out, (x | y | to) % 16 == 0, WIDE, SINGLE);
    }
  }

  /** The gradients of a and b from g. */
  public static void backward(
      StridedTensor g, StridedTensor a, StridedTensor b, StridedTensor ga, StridedTensor gb) {
    if (ga.numel() == 0) {
      return;
    }
    try (CudaTemporaries temporaries = new CudaTemporaries(ga.device())) {
      long d = temporaries.contiguous(g, a.dtype()).dataAddress();
      long x = temporaries.contiguous(a).dataAddress();
      long y = temporaries.contiguous(b).dataAddress();
      long toA = ga.dataAddress();
      long toB = gb.dataAddress();
      Launch launch =
          Launch.on(ga.device().index())
              .int64(d)
              .int64(x)
              .int64(y)
              .int64(toA)
              .int64(toB)
              .int64(ga.numel());
      run(launch, ga, (d | x | y | toA | toB) % 16 == 0, BACKWARD_WIDE, BACKWARD_SINGLE);
    }
  }

  private static void run(
      Launch launch,
      StridedTensor out,
      boolean vectors,
      KernelsByDType wide,
      KernelsByDType single) {
    long items = vectors ? (out.numel() + 15) / (16 / out.dtype().byteSize()) : out.numel();
    launch.run(
        (vectors ? wide : single).of(out.dtype()),
        Grids.blocks(launch.device(), items, THREADS),
        THREADS);
  }
}
