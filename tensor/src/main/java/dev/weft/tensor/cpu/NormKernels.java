package dev.weft.tensor.cpu;

import dev.weft.tensor.StridedTensor;
import org.jspecify.annotations.Nullable;

/**
 * Layer and RMS normalisation over rows of {@code n} trailing elements, with gradients for input
 * and weight apart. Weights are rows of {@code n} elements; null means ones.
 */
public final class NormKernels {
  private NormKernels() {}

  private static float @Nullable [] floatRow(@Nullable StridedTensor weight, int n, int slot) {
    if (weight == null) {
      return null;
    }
    float[] w = Scratch.get().floats(slot, n);
    new Cursor(weight).read(w, 0, n);
    return w;
  }

  private static double @Nullable [] doubleRow(@Nullable StridedTensor weight, int n, int slot) {
    if (weight == null) {
      return null;
    }
    double[] w = Scratch.get().doubles(slot, n);
    new Cursor(weight).read(w, 0, n);
    return w;
  }

  /** The sum of products over a range, in double. */
  static double dot(float[] x, float[] y, int at, int n) {
    double a = 0;
    double b = 0;
    double c = 0;
    double d = 0;
    int end = at + n;
    int i = at;
    for (; i + 3 < end; i += 4) {
      a += (double) x[i] * y[i];
      b += (double) x[i + 1] * y[i + 1];
      c += (double) x[i + 2] * y[i + 2];
      d += (double) x[i + 3] * y[i + 3];
    }
    for (; i < end; i++) {
      a += (double) x[i] * y[i];
    }
    return (a + b) + (c + d);
  }

  private static int batch(int n) {
    return Math.max(1, Scratch.CHUNK / n);
  }

  /** x / sqrt(mean(x^2) + eps) * weight. */
  public static void rms(
      StridedTensor in, @Nullable StridedTensor weight, StridedTensor out, int n, double eps) {
    long rows = n == 0 ? 0 : in.numel() / n;
    Cursor from = new Cursor(in);
    Cursor to = new Cursor(out);
    if (Compute.of(out.dtype()) == Compute.FLOAT) {
      float[] w = floatRow(weight, n, 1);
      int batch = batch(n);
      float[] x = Scratch.get().floats(0, batch * n);
      for (long r = 0; r < rows; r += batch) {
        int count = (int) Math.min(batch, rows - r);
        from.read(x, 0, count * n);
        for (int k = 0; k < count; k++) {
          int at = k * n;
          float s = (float) (1 / Math.sqrt(dot(x, x, at, n) / n + eps));
          if (w == null) {
            for (int i = 0; i < n; i++) {
              x[at + i] *= s;
            }
          } else {
            for (int i = 0; i < n; i++) {
              x[at + i] = x[at + i] * s * w[i];
            }
          }
        }
        to.write(x, 0, count * n);
      }
      return;
    }
    double[] w = doubleRow(weight, n, 1);
    double[] x = Scratch.get().doubles(0, n);
    for (long r = 0; r < rows; r++) {
      from.read(x, 0, n);
      double s = inverseRms(x, n, eps);
      for (int i = 0; i < n; i++) {
        x[i] = x[i] * s * (w == null ? 1 : w[i]);
      }
      to.write(x, 0, n);
    }
  }

  private static double inverseRms(double[] x, int n, double eps) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
      sum += x[i] * x[i];
    }
    return 1 / Math.sqrt(sum / n + eps);
  }

  /** With s = 1/sqrt(mean(x^2) + eps) and h = g weight: s (h - x s^2 mean(h x)). */
  public static void rmsBackward(
      StridedTensor g,
      StridedTensor in,
      @Nullable StridedTensor weight,
      StridedTensor out,
      int n,
      double eps) {
    long rows = n == 0 ? 0 : in.numel() / n;
    Cursor gradients = new Cursor(g);
    Cursor from = new Cursor(in);
    Cursor to = new Cursor(out);
    if (Compute.of(out.dtype()) == Compute.FLOAT) {
      float[] w = floatRow(weight, n, 2);
      int batch = batch(n);
      float[] x = Scratch.get().floats(0, batch * n);
      float[] h = Scratch.get().floats(1, batch * n);
      for (long r = 0; r < rows; r += batch) {
        int count = (int) Math.min(batch, rows - r);
        from.read(x, 0, count * n);
        gradients.read(h, 0, count * n);
        for (int k = 0; k < count; k++) {
          rmsBackward(x, h, w, k * n, n, eps);
        }
        to.write(x, 0, count * n);
      }
      return;
    }
    double[] w = doubleRow(weight, n, 2);
    double[] x = Scratch.get().doubles(0, n);
    double[] h = Scratch.get().doubles(1, n);
    for (long r = 0; r < rows; r++) {
      from.read(x, 0, n);
      gradients.read(h, 0, n);
      double s = inverseRms(x, n, eps);
      double dot = 0;
      for (int i = 0; i < n; i++) {
        h[i] *= w == null ? 1 : w[i];
        dot += h[i] * x[i];
      }
      double c = s * s * dot / n;
      for (int i = 0; i < n; i++) {
        x[i] = s * (h[i] - c * x[i]);
      }
      to.write(x, 0, n);
    }
  }

  /** Puts a row's gradient in the place of x. */
  private static void rmsBackward(
      float[] x, float[] h, float @Nullable [] w, int at, int n, double eps) {
    if (w != null) {
      for (int i = 0; i < n; i++) {
        h[at + i] *= w[i];
      }
    }
    double s = 1 / Math.sqrt(dot(x, x, at, n) / n + eps);
    float c = (float) (s * s * s * dot(h, x, at, n) / n);
    float f = (float) s;
    for (int i = at; i < at + n; i++) {
      x[i] = f * h[i] - c * x[i];
    }
  }

  /** The sum over rows of g x / sqrt(mean(x^2) + eps). */
  public static void rmsWeightBackward(
      StridedTensor g, StridedTensor in, StridedTensor out, int n, double eps) {
    weightBackward(g, in, out, n, eps, false);
  }

  /** The sum over rows of g (x - mean) / sqrt(var + eps). */
  public static void layerWeightBackward(
      StridedTensor g, StridedTensor in, StridedTensor out, int n, double eps) {
    weightBackward(g, in, out, n, eps, true);
  }

  private static void weightBackward(
      StridedTensor g, StridedTensor in, StridedTensor out, int n, double eps, boolean layer) {
    long rows = n == 0 ? 0 : in.numel() / n;
    Cursor gradients = new Cursor(g);
    Cursor from = new Cursor(in);
    Scratch scratch = Scratch.get();
    double[] sums = scratch.doubles(0, n);
    java.util.Arrays.fill(sums, 0, n, 0);
    if (!layer && Compute.of(in.dtype()) == Compute.FLOAT) {
      int batch = batch(n);
      float[] x = scratch.floats(0, batch * n);
      float[] h = scratch.floats(1, batch * n);
      float[] block = scratch.floats(2, n);
      java.util.Arrays.fill(block, 0, n, 0);
      for (long r = 0; r < rows; r += batch) {
        int count = (int) Math.min(batch, rows - r);
        from.read(x, 0, count * n);
        gradients.read(h, 0, count * n);
        for (int k = 0; k < count; k++) {
          int at = k * n;
          float s = (float) (1 / Math.sqrt(dot(x, x, at, n) / n + eps));
          for (int i = 0; i < n; i++) {
            block[i] += h[at + i] * (x[at + i] * s);
          }
        }
        for (int i = 0; i < n; i++) {
          sums[i] += block[i];
          block[i] = 0;
        }
      }
    } else {
      double[] x = scratch.doubles(1, n);
      double[] h = scratch.doubles(2, n);
      for (long r = 0; r < rows; r++) {
        from.read(x, 0, n);
        gradients.read(h, 0, n);
        double mean = layer ? mean(x, n) : 0;
        double s = layer ? inverseDeviation(x, n, mean, eps) : inverseRms(x, n, eps);
        for (int i = 0; i < n; i++) {
          sums[i] += h[i] * (x[i] - mean) * s;
        }
      }
    }
    new Cursor(out).write(sums, 0, n);
  }

  private static double mean(double[] x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
      sum += x[i];
    }
    return sum / n;
  }

  private static double inverseDeviation(double[] x, int n, double mean, double eps) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
      double d = x[i] - mean;
      sum += d * d;
    }
    return 1 / Math.sqrt(sum / n + eps);
  }

  /** (x - mean) / sqrt(var + eps) * weight + bias. */
  public static void layer(
      StridedTensor in,
      @Nullable StridedTensor weight,
      @Nullable StridedTensor bias,
      StridedTensor out,
      int n,
      double eps) {
    long rows = n == 0 ? 0 : in.numel() / n;
    Cursor from = new Cursor(in);
    Cursor to = new Cursor(out);
    double[] w = doubleRow(weight, n, 1);
    double[] b = doubleRow(bias, n, 2);
    double[] x = Scratch.get().doubles(0, n);
    for (long r = 0; r < rows; r++) {
      from.read(x, 0, n);
      double mean = mean(x, n);
      double s = inverseDeviation(x, n, mean, eps);
      for (int i = 0; i < n; i++) {
        x[i] = (x[i] - mean) * s * (w == null ? 1 : w[i]) + (b == null ? 0 : b[i]);
      }
      to.write(x, 0, n);
    }
  }

  /** With z the normalised row and h = g weight: (h - mean(h) - z mean(h z)) / sqrt(var + eps). */
  public static void layerBackward(
      StridedTensor g,
      StridedTensor in,
      @Nullable StridedTensor weight,
      StridedTensor out,
      int n,
      double eps) {
    long rows = n == 0 ? 0 : in.numel() / n;
    Cursor gradients = new Cursor(g);
    Cursor from = new Cursor(in);
    Cursor to = new Cursor(out);
    double[] w = doubleRow(weight, n, 2);
    double[] x = Scratch.get().doubles(0, n);
    double[] h = Scratch.get().doubles(1, n);
    for (long r = 0; r < rows; r++) {
      from.read(x, 0, n);
      gradients.read(h, 0, n);
      double mean = mean(x, n);
      double s = inverseDeviation(x, n, mean, eps);
      double sum = 0;
      double dot = 0;
      for (int i = 0; i < n; i++) {
        h[i] *= w == null ? 1 : w[i];
        x[i] = (x[i] - mean) * s;
        sum += h[i];
        dot += h[i] * x[i];
      }
      for (int i = 0; i < n; i++) {
        x[i] = s * (h[i] - sum / n - x[i] * dot / n);
      }
      to.write(x, 0, n);
    }
  }
}
