package dev.weft.tensor.cpu;

import dev.weft.tensor.StridedTensor;

/** Softmax and its logarithm along a dimension, with their gradients. */
public final class SoftmaxKernels {
  private SoftmaxKernels() {}

  /** A cursor with a dimension moved to the end, so that its slices are rows. */
  static Cursor rows(StridedTensor t, int dim) {
    if (t.ndim() == 0) {
      return new Cursor(t);
    }
    int[] order = Layouts.last(dim, t.ndim());
    return new Cursor(
        t.dtype(),
        t.dataAddress(),
        Layouts.pick(t.shape(), order),
        Layouts.pick(t.strides(), order));
  }

  static int length(StridedTensor t, int dim) {
    return t.ndim() == 0 ? 1 : Math.toIntExact(t.shape()[dim]);
  }

  /** Softmax, or its logarithm. */
  public static void softmax(StridedTensor in, StridedTensor out, int dim, boolean log) {
    if (out.numel() == 0) {
      return;
    }
    int n = length(in, dim);
    long rows = out.numel() / n;
    Cursor from = rows(in, dim);
    Cursor to = rows(out, dim);
    if (Compute.of(out.dtype()) == Compute.DOUBLE) {
      double[] x = Scratch.get().doubles(0, n);
      for (long r = 0; r < rows; r++) {
        from.read(x, 0, n);
        softmax(x, n, log);
        to.write(x, 0, n);
      }
      return;
    }
    // Several short rows at a time, so that the exponential runs over long arrays.
    int batch = Math.max(1, Scratch.CHUNK / n);
    float[] x = Scratch.get().floats(0, batch * n);
    float[] e = log ? Scratch.get().floats(1, batch * n) : x;
    for (long r = 0; r < rows; r += batch) {
      int count = (int) Math.min(batch, rows - r);
      from.read(x, 0, count * n);
      for (int i = 0; i < count; i++) {
        subtractMax(x, i * n, n);
      }
      FastMath.exp(x, e, count * n);
      for (int i = 0; i < count; i++) {
        normalise(x, e, i * n, n, log);
      }
      to.write(x, 0, count * n);
    }
  }

  private static void softmax(double[] x, int n, boolean log) {
    double max = Double.NEGATIVE_INFINITY;
    for (int i = 0; i < n; i++) {
      max = Math.max(max, x[i]);
    }
    double sum = 0;
    for (int i = 0; i < n; i++) {
      sum += Math.exp(x[i] - max);
    }
    double shift = Math.log(sum);
    for (int i = 0; i < n; i++) {
      x[i] = log ? x[i] - max - shift : Math.exp(x[i] - max) / sum;
    }
  }

  /** Subtracts a row's maximum. */
  static void subtractMax(float[] x, int at, int n) {
    float max = max(x, at, n);
    for (int i = at; i < at + n; i++) {
      x[i] -= max;
    }
  }

  /** The maximum; NaN wins. */
  static float max(float[] x, int at, int n) {
    float a = Float.NEGATIVE_INFINITY;
    float b = a;
    float c = a;
    float d = a;
    int i = at;
    int end = at + n;
    for (; i + 3 < end; i += 4) {
      a = Math.max(a, x[i]);
      b = Math.max(b, x[i + 1]);
      c = Math.max(c, x[i + 2]);
      d = Math.max(d, x[i + 3]);
    }
    for (; i < end; i++) {
      a = Math.max(a, x[i]);
    }
    return Math.max(Math.max(a, b), Math.max(c, d));
  }

  /** The sum in double. */
  static double sum(float[] x, int at, int n) {
    double a = 0;
    double b = 0;
    double c = 0;
    double d = 0;
    int i = at;
    int end = at + n;
    for (; i + 3 < end; i += 4) {
      a += x[i];
      b += x[i + 1];
      c += x[i + 2];
      d += x[i + 3];
    }
    for (; i < end; i++) {
      a += x[i];
    }
    return (a + b) + (c + d);
  }

  private static void normalise(float[] x, float[] e, int at, int n, boolean log) {
    double sum = sum(e, at, n);
    if (log) {
      float shift = (float) Math.log(sum);
      for (int i = at; i < at + n; i++) {
        x[i] -= shift;
      }
    } else {
      float inverse = (float) (1 / sum);
      for (int i = at; i < at + n; i++) {
        x[i] = e[i] * inverse;
      }
    }
  }

  /**
   * The gradient of softmax, y (g - sum(g y)), or of its logarithm, g - exp(y) sum(g), from the
   * gradient g and the output y.
   */
  public static void backward(
      StridedTensor g, StridedTensor y, StridedTensor out, int dim, boolean log) {
    if (out.numel() == 0) {
      return;
    }
    int n = length(out, dim);
    long rows = out.numel() / n;
    Cursor gs = rows(g, dim);
    Cursor ys = rows(y, dim);
    Cursor to = rows(out, dim);
    if (Compute.of(out.dtype()) == Compute.DOUBLE) {
      double[] a = Scratch.get().doubles(0, n);
      double[] b = Scratch.get().doubles(1, n);
      for (long r = 0; r < rows; r++) {
        gs.read(a, 0, n);
        ys.read(b, 0, n);
        double sum = 0;
        for (int i = 0; i < n; i++) {
          sum += log ? a[i] : a[i] * b[i];
        }
        for (int i = 0; i < n; i++) {
          a[i] = log ? a[i] - Math.exp(b[i]) * sum : b[i] * (a[i] - sum);
        }
        to.write(a, 0, n);
      }
      return;
    }
    int batch = Math.max(1, Scratch.CHUNK / n);
    float[] a = Scratch.get().floats(0, batch * n);
    float[] b = Scratch.get().floats(1, batch * n);
    float[] c = Scratch.get().floats(2, batch * n);
    for (long r = 0; r < rows; r += batch) {
      int count = (int) Math.min(batch, rows - r);
      int size = count * n;
      gs.read(a, 0, size);
      ys.read(b, 0, size);
      if (log) {
        FastMath.exp(b, b, size);
      } else {
        for (int i = 0; i < size; i++) {
          c[i] = a[i] * b[i];
        }
      }
      for (int k = 0; k < count; k++) {
        int at = k * n;
        float sum = (float) sum(log ? a : c, at, n);
        if (log) {
          for (int i = at; i < at + n; i++) {
            a[i] -= b[i] * sum;
          }
        } else {
          for (int i = at; i < at + n; i++) {
            a[i] = b[i] * (a[i] - sum);
          }
        }
      }
      to.write(a, 0, size);
    }
  }

  /** Running sums along a dimension, from its end where {@code reverse}. */
  public static void cumsum(StridedTensor in, StridedTensor out, int dim, boolean reverse) {
    if (out.numel() == 0) {
      return;
    }
    int n = length(in, dim);
    long rows = out.numel() / n;
    Cursor from = rows(in, dim);
    Cursor to = rows(out, dim);
    if (Compute.of(out.dtype()) == Compute.LONG) {
      long[] x = Scratch.get().longs(0, n);
      for (long r = 0; r < rows; r++) {
        from.read(x, 0, n);
        for (int i = 1; i < n; i++) {
          int k = reverse ? n - 1 - i : i;
          x[k] += x[reverse ? k + 1 : k - 1];
        }
        to.write(x, 0, n);
      }
      return;
    }
    double[] x = Scratch.get().doubles(0, n);
    for (long r = 0; r < rows; r++) {
      from.read(x, 0, n);
      for (int i = 1; i < n; i++) {
        int k = reverse ? n - 1 - i : i;
        x[k] += x[reverse ? k + 1 : k - 1];
      }
      to.write(x, 0, n);
    }
  }
}
