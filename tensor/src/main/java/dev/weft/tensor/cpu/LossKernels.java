package dev.weft.tensor.cpu;

import dev.weft.tensor.StridedTensor;

/** Cross-entropy over class indices and the negative log-likelihood, with their gradients. */
public final class LossKernels {
  private LossKernels() {}

  /**
   * What a loss is computed with.
   *
   * @param op the operator's name, for messages
   * @param reduction {@code mean}, {@code sum} or {@code none}
   * @param ignore the target that does not count
   * @param smoothing the weight of the uniform distribution, 0 to 1
   */
  public record Options(String op, String reduction, long ignore, double smoothing) {
    boolean isNone() {
      return reduction.equals("none");
    }

    boolean isMean() {
      return reduction.equals("mean");
    }
  }

  private static int classDim(StridedTensor in) {
    return in.ndim() == 1 ? 0 : 1;
  }

  private static void check(Options o, long target, long position, int classes) {
    if (target < 0 || target >= classes) {
      throw new IndexOutOfBoundsException(
          o.op
              + ": target "
              + target
              + " at position "
              + position
              + " is out of range; expected [0, "
              + (classes - 1)
              + "] or the ignored index "
              + o.ignore);
    }
  }

  private static long count(StridedTensor target, long ignore) {
    long n = target.numel();
    Cursor from = new Cursor(target);
    long[] buffer = Scratch.get().longs(1, Scratch.CHUNK);
    long count = 0;
    for (long done = 0; done < n; done += Scratch.CHUNK) {
      int size = (int) Math.min(Scratch.CHUNK, n - done);
      from.read(buffer, 0, size);
      for (int i = 0; i < size; i++) {
        count += buffer[i] == ignore ? 0 : 1;
      }
    }
    return count;
  }

  /** The loss of logits [N, C, ...] or [C] for class indices [N, ...] or []. */
  public static void crossEntropy(
      StridedTensor in, StridedTensor target, StridedTensor out, Options o) {
    int dim = classDim(in);
    int n = Math.toIntExact(in.shape()[dim]);
    long rows = target.numel();
    Cursor from = SoftmaxKernels.rows(in, dim);
    Cursor targets = new Cursor(target);
    Cursor to = new Cursor(out);
    Scratch scratch = Scratch.get();
    long[] t = scratch.longs(0, 1);
    double[] loss = scratch.doubles(2, 1);
    double[] x = scratch.doubles(0, n);
    float[] f = scratch.floats(0, n);
    float[] e = scratch.floats(1, n);
    boolean floats = Compute.of(in.dtype()) == Compute.FLOAT;
    double total = 0;
    long counted = 0;
    for (long r = 0; r < rows; r++) {
      targets.read(t, 0, 1);
      boolean counts = t[0] != o.ignore;
      if (counts) {
        check(o, t[0], r, n);
      }
      double value;
      if (floats) {
        from.read(f, 0, n);
        value = counts ? rowLoss(f, e, n, (int) t[0], o.smoothing) : 0;
      } else {
        from.read(x, 0, n);
        value = counts ? rowLoss(x, n, (int) t[0], o.smoothing) : 0;
      }
      if (o.isNone()) {
        loss[0] = value;
        to.write(loss, 0, 1);
      } else {
        total += value;
        counted += counts ? 1 : 0;
      }
    }
    if (!o.isNone()) {
      loss[0] = o.isMean() ? total / counted : total;
      to.write(loss, 0, 1);
    }
  }

  private static double rowLoss(float[] x, float[] e, int n, int target, double smoothing) {
    float max = SoftmaxKernels.max(x, 0, n);
    for (int i = 0; i < n; i++) {
      e[i] = x[i] - max;
    }
    double picked = e[target];
    double mean = smoothing == 0 ? 0 : SoftmaxKernels.sum(e, 0, n) / n;
    FastMath.exp(e, e, n);
    double log = Math.log(SoftmaxKernels.sum(e, 0, n));
    return log - (1 - smoothing) * picked - (smoothing == 0 ? 0 : smoothing * mean);
  }

  private static double rowLoss(double[] x, int n, int target, double smoothing) {
    double max = Double.NEGATIVE_INFINITY;
    for (int i = 0; i < n; i++) {
      max = Math.max(max, x[i]);
    }
    double sum = 0;
    double mean = 0;
    for (int i = 0; i < n; i++) {
      sum += Math.exp(x[i] - max);
      mean += (x[i] - max) / n;
    }
    return Math.log(sum)
        - (1 - smoothing) * (x[target] - max)
        - (smoothing == 0 ? 0 : smoothing * mean);
  }

  /** The gradient of the logits: the loss's gradient times softmax minus the target weights. */
  public static void crossEntropyBackward(
      StridedTensor g, StridedTensor in, StridedTensor target, StridedTensor out, Options o) {
    if (out.numel() == 0) {
      return;
    }
    int dim = classDim(in);
    int n = Math.toIntExact(in.shape()[dim]);
    long rows = target.numel();
    Cursor from = SoftmaxKernels.rows(in, dim);
    Cursor to = SoftmaxKernels.rows(out, dim);
    Cursor targets = new Cursor(target);
    Cursor gradients = new Cursor(g, target.shape());
    double divisor = o.isMean() ? count(target, o.ignore) : 1;
    Scratch scratch = Scratch.get();
    boolean floats = Compute.of(in.dtype()) == Compute.FLOAT;
    int batch = Math.max(1, Scratch.CHUNK / n);
    long[] t = scratch.longs(0, batch);
    double[] gs = scratch.doubles(1, batch);
    float[] f = scratch.floats(0, batch * n);
    double[] x = scratch.doubles(0, n);
    for (long r = 0; r < rows; r += batch) {
      int size = (int) Math.min(batch, rows - r);
      targets.read(t, 0, size);
      gradients.read(gs, 0, size);
      for (int k = 0; k < size; k++) {
        if (t[k] == o.ignore) {
          gs[k] = 0;
        } else {
          check(o, t[k], r + k, n);
        }
      }
      if (floats) {
        from.read(f, 0, size * n);
        for (int k = 0; k < size; k++) {
          SoftmaxKernels.subtractMax(f, k * n, n);
        }
        FastMath.exp(f, f, size * n);
        for (int k = 0; k < size; k++) {
          rowGradient(f, k * n, n, t[k], gs[k] / divisor, o);
        }
        to.write(f, 0, size * n);
      } else {
        for (int k = 0; k < size; k++) {
          from.read(x, 0, n);
          rowGradient(x, n, t[k], gs[k] / divisor, o);
          to.write(x, 0, n);
        }
      }
    }
  }

  private static void rowGradient(float[] e, int at, int n, long target, double g, Options o) {
    if (target == o.ignore) {
      java.util.Arrays.fill(e, at, at + n, 0f);
      return;
    }
    float scale = (float) (g / SoftmaxKernels.sum(e, at, n));
    float uniform = (float) (g * o.smoothing / n);
    for (int i = at; i < at + n; i++) {
      e[i] = e[i] * scale - uniform;
    }
    e[at + (int) target] -= (float) (g * (1 - o.smoothing));
  }

  private static void rowGradient(double[] x, int n, long target, double g, Options o) {
    if (target == o.ignore) {
      java.util.Arrays.fill(x, 0, n, 0);
      return;
    }
    double max = Double.NEGATIVE_INFINITY;
    for (int i = 0; i < n; i++) {
      max = Math.max(max, x[i]);
    }
    double sum = 0;
    for (int i = 0; i < n; i++) {
      x[i] = Math.exp(x[i] - max);
      sum += x[i];
    }
    for (int i = 0; i < n; i++) {
      x[i] = g * (x[i] / sum - o.smoothing / n);
    }
    x[(int) target] -= g * (1 - o.smoothing);
  }

  /** The loss of log-probabilities; the layout is that of {@link #crossEntropy}. */
  public static void nll(StridedTensor in, StridedTensor target, StridedTensor out, Options o) {
    int dim = classDim(in);
    int n = Math.toIntExact(in.shape()[dim]);
    long rows = target.numel();
    Cursor from = SoftmaxKernels.rows(in, dim);
    Cursor targets = new Cursor(target);
    Cursor to = new Cursor(out);
    long[] t = Scratch.get().longs(0, 1);
    double[] x = Scratch.get().doubles(0, n);
    double[] loss = Scratch.get().doubles(1, 1);
    double total = 0;
    long counted = 0;
    for (long r = 0; r < rows; r++) {
      targets.read(t, 0, 1);
      from.read(x, 0, n);
      double value = 0;
      if (t[0] != o.ignore) {
        check(o, t[0], r, n);
        value = -x[(int) t[0]];
        counted++;
      }
      if (o.isNone()) {
        loss[0] = value;
        to.write(loss, 0, 1);
      }
      total += value;
    }
    if (!o.isNone()) {
      loss[0] = o.isMean() ? total / counted : total;
      to.write(loss, 0, 1);
    }
  }

  /** Its gradient; {@code in} gives only the shape. */
  public static void nllBackward(
      StridedTensor g, StridedTensor in, StridedTensor target, StridedTensor out, Options o) {
    if (out.numel() == 0) {
      return;
    }
    int dim = classDim(in);
    int n = Math.toIntExact(in.shape()[dim]);
    long rows = target.numel();
    double divisor = o.isMean() ? count(target, o.ignore) : 1;
    Cursor targets = new Cursor(target);
    Cursor gradients = new Cursor(g, target.shape());
    Cursor to = SoftmaxKernels.rows(out, dim);
    long[] t = Scratch.get().longs(0, 1);
    double[] gs = Scratch.get().doubles(1, 1);
    double[] x = Scratch.get().doubles(0, n);
    for (long r = 0; r < rows; r++) {
      targets.read(t, 0, 1);
      gradients.read(gs, 0, 1);
      java.util.Arrays.fill(x, 0, n, 0);
      if (t[0] != o.ignore) {
        check(o, t[0], r, n);
        x[(int) t[0]] = -gs[0] / divisor;
      }
      to.write(x, 0, n);
    }
  }
}
