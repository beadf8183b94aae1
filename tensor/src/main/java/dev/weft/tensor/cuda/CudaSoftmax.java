package dev.weft.tensor.cuda;

import dev.weft.tensor.StridedTensor;

/** Softmax and its logarithm along a dimension on a GPU, with their gradients. */
public final class CudaSoftmax {
  private static final int SHORT = 128;
  private static final int MIDDLE = 1024;
  private static final int ROWS = 8;
  private static final int THREADS = 256;
  private static final Form SOFTMAX = new Form("softmax");
  private static final Form LOG_SOFTMAX = new Form("log_softmax");

  private static final class Form {
    final KernelsByDType shortest;
    final KernelsByDType middle;
    final KernelsByDType longest;
    final KernelsByDType columns;
    final KernelsByDType backwardShort;
    final KernelsByDType backwardLong;
    final KernelsByDType backwardColumns;

    Form(String name) {
      shortest = kernel(name + "_128");
      middle = kernel(name + "_1024");
      longest = kernel(name + "_long");
      columns = kernel(name + "_columns");
      backwardShort = kernel(name + "_backward_short");
      backwardLong = kernel(name + "_backward_long");
      backwardColumns = kernel(name + "_backward_columns");
    }

    private static KernelsByDType kernel(String name) {
      return new KernelsByDType("softmax.cu", name);
    }
  }

  private CudaSoftmax() {}

  static long inner(StridedTensor t, int dim) {
    long inner = 1;
    for (int d = dim + 1; d < t.ndim(); d++) {
      inner *= t.shape()[d];
    }
    return inner;
  }

  private static long length(StridedTensor t, int dim) {
    return t.ndim() == 0 ? 1 : t.shape()[dim];
  }

  /** Softmax, or its logarithm. */
  public static void forward(StridedTensor in, StridedTensor out, int dim, boolean log) {
    if (out.numel() == 0) {
      return;
    }
    Form form = log ? LOG_SOFTMAX : SOFTMAX;
    long n = length(in, dim);
    long rows = out.numel() / n;
    long inner = inner(in, dim);
    int device = out.device().index();
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      long x = temporaries.contiguous(in).dataAddress();
      long y = out.dataAddress();
      Launch launch = Launch.on(device).int64(x).int64(y);
      if (inner > 1) {
        launch
            .int64(rows)
            .int64(n)
            .int64(inner)
            .run(form.columns.of(out.dtype()), (rows + THREADS - 1) / THREADS, THREADS);
      } else if (n <= MIDDLE) {
        launch
            .int64(rows)
            .int32((int) n)
            .align(8)
            .int64(n)
            .run(
                (n <= SHORT ? form.shortest : form.middle).of(out.dtype()),
                (rows + ROWS - 1) / ROWS,
                1,
                1,
                32,
                ROWS,
                0);
      } else {
        launch.int64(n).int64(n).run(form.longest.of(out.dtype()), rows, threads(n));
      }
    }
  }

  /** Threads of a block that walks over a row. */
  static int threads(long n) {
    return n <= 2048 ? 256 : n <= 8192 ? 512 : 1024;
  }

  /** The gradient of softmax or its logarithm from the gradient g and the output y. */
  public static void backward(
      StridedTensor g, StridedTensor y, StridedTensor out, int dim, boolean log) {
    if (out.numel() == 0) {
      return;
    }
    Form form = log ? LOG_SOFTMAX : SOFTMAX;
    long n = length(out, dim);
    long rows = out.numel() / n;
    long inner = inner(out, dim);
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      long gs = temporaries.contiguous(g, out.dtype()).dataAddress();
      long ys = temporaries.contiguous(y).dataAddress();
      long to = out.dataAddress();
      Launch launch =
          Launch.on(out.device().index()).int64(gs).int64(ys).int64(to).int64(rows).int64(n);
      if (inner > 1) {
        launch
            .int64(inner)
            .run(form.backwardColumns.of(out.dtype()), (rows + THREADS - 1) / THREADS, THREADS);
      } else if (n <= MIDDLE) {
        launch.run(form.backwardShort.of(out.dtype()), (rows + ROWS - 1) / ROWS, 1, 1, 32, ROWS, 0);
      } else {
        launch.run(form.backwardLong.of(out.dtype()), rows, threads(n));
      }
    }
  }
}
