package dev.weft.tensor.cpu;

import dev.weft.tensor.StridedTensor;

/** Rotary position embedding of neighbouring pairs; Su et al., arXiv:2104.09864. */
public final class RopeKernels {
  private RopeKernels() {}

  /**
   * Rotates the pairs (2e, 2e+1) of the last dimension by the angles whose cosines and sines are
   * given as [positions, pairs]; positions run along {@code dim}.
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
    int n = Math.toIntExact(in.size(-1));
    int half = n / 2;
    long rows = in.numel() / n;
    // Rows that share a position follow each other `inner` times.
    long inner = 1;
    for (int d = dim + 1; d < in.ndim() - 1; d++) {
      inner *= in.shape()[d];
    }
    int positions = Math.toIntExact(in.shape()[dim]);
    Cursor from = new Cursor(in);
    Cursor to = new Cursor(out);
    if (Compute.of(out.dtype()) == Compute.FLOAT) {
      float[] c = new float[positions * half];
      float[] s = new float[positions * half];
      new Cursor(cos).read(c, 0, c.length);
      new Cursor(sin).read(s, 0, s.length);
      float sign = inverse ? -1 : 1;
      // Several short rows at a time.
      int batch = Math.max(1, Scratch.CHUNK / n);
      float[] x = Scratch.get().floats(0, batch * n);
      for (long r = 0; r < rows; r += batch) {
        int count = (int) Math.min(batch, rows - r);
        from.read(x, 0, count * n);
        for (int k = 0; k < count; k++) {
          rotate(x, k * n, c, s, (int) ((r + k) / inner % positions) * half, half, sign);
        }
        to.write(x, 0, count * n);
      }
      return;
    }
    double[] c = new double[positions * half];
    double[] s = new double[positions * half];
    new Cursor(cos).read(c, 0, c.length);
    new Cursor(sin).read(s, 0, s.length);
    double sign = inverse ? -1 : 1;
    double[] x = Scratch.get().doubles(0, n);
    for (long r = 0; r < rows; r++) {
      int at = (int) (r / inner % positions) * half;
      from.read(x, 0, n);
      for (int e = 0; e < half; e++) {
        double a = x[2 * e];
        double b = x[2 * e + 1];
        double k = sign * s[at + e];
        x[2 * e] = a * c[at + e] - b * k;
        x[2 * e + 1] = a * k + b * c[at + e];
      }
      to.write(x, 0, n);
    }
  }

  private static void rotate(
      float[] x, int at, float[] cos, float[] sin, int table, int half, float sign) {
    for (int e = 0; e < half; e++) {
      float a = x[at + 2 * e];
      float b = x[at + 2 * e + 1];
      float c = cos[table + e];
      float s = sign * sin[table + e];
      x[at + 2 * e] = a * c - b * s;
      x[at + 2 * e + 1] = a * s + b * c;
    }
  }
}
