package dev.weft.tensor.cpu;

import dev.weft.tensor.StridedTensor;

/** Fused parameter updates; parameter, gradient and state have one shape. */
public final class OptimizerKernels {
  private static final int CHUNK = Scratch.CHUNK;

  private OptimizerKernels() {}

  /**
   * The factors of one AdamW step.
   *
   * @param decay what the parameter is multiplied with first
   * @param beta1 of the mean
   * @param beta2 of the mean square
   * @param stepSize the learning rate over the mean's bias correction
   * @param correction the root of the mean square's bias correction
   * @param eps added to the root
   */
  public record AdamStep(
      double decay, double beta1, double beta2, double stepSize, double correction, double eps) {}

  /** One AdamW step on a parameter, with its gradient, mean and mean square. */
  public static void adamw(
      StridedTensor p, StridedTensor g, StridedTensor m, StridedTensor v, AdamStep s) {
    long n = p.numel();
    if (n == 0) {
      return;
    }
    Cursor pIn = new Cursor(p);
    Cursor pOut = new Cursor(p);
    Cursor gIn = new Cursor(g);
    Cursor mIn = new Cursor(m);
    Cursor mOut = new Cursor(m);
    Cursor vIn = new Cursor(v);
    Cursor vOut = new Cursor(v);
    Scratch scratch = Scratch.get();
    if (Compute.of(p.dtype()) == Compute.DOUBLE) {
      double[] pa = scratch.doubles(0, CHUNK);
      double[] ga = scratch.doubles(1, CHUNK);
      double[] ma = scratch.doubles(2, CHUNK);
      double[] va = scratch.doubles(3, CHUNK);
      for (long done = 0; done < n; done += CHUNK) {
        int size = (int) Math.min(CHUNK, n - done);
        pIn.read(pa, 0, size);
        gIn.read(ga, 0, size);
        mIn.read(ma, 0, size);
        vIn.read(va, 0, size);
        adamw(pa, ga, ma, va, size, s);
        pOut.write(pa, 0, size);
        mOut.write(ma, 0, size);
        vOut.write(va, 0, size);
      }
      return;
    }
    float[] pa = scratch.floats(0, CHUNK);
    float[] ga = scratch.floats(1, CHUNK);
    float[] ma = scratch.floats(2, CHUNK);
    float[] va = scratch.floats(3, CHUNK);
    for (long done = 0; done < n; done += CHUNK) {
      int size = (int) Math.min(CHUNK, n - done);
      pIn.read(pa, 0, size);
      gIn.read(ga, 0, size);
      mIn.read(ma, 0, size);
      vIn.read(va, 0, size);
      adamw(pa, ga, ma, va, size, s);
      pOut.write(pa, 0, size);
      mOut.write(ma, 0, size);
      vOut.write(va, 0, size);
    }
  }

  private static void adamw(float[] p, float[] g, float[] m, float[] v, int n, AdamStep s) {
    float b1 = (float) s.beta1;
    float c1 = (float) (1 - s.beta1);
    float b2 = (float) s.beta2;
    float c2 = (float) (1 - s.beta2);
    for (int i = 0; i < n; i++) {
      m[i] = b1 * m[i] + c1 * g[i];
    }
    for (int i = 0; i < n; i++) {
      v[i] = b2 * v[i] + c2 * g[i] * g[i];
    }
    float decay = (float) s.decay;
    float step = (float) s.stepSize;
    float correction = (float) s.correction;
    float eps = (float) s.eps;
    for (int i = 0; i < n; i++) {
      float root = (float) Math.sqrt(v[i]) / correction + eps;
      p[i] = p[i] * decay - step * m[i] / root;
    }
  }

  private static void adamw(double[] p, double[] g, double[] m, double[] v, int n, AdamStep s) {
    for (int i = 0; i < n; i++) {
      m[i] = s.beta1 * m[i] + (1 - s.beta1) * g[i];
      v[i] = s.beta2 * v[i] + (1 - s.beta2) * g[i] * g[i];
      p[i] = p[i] * s.decay - s.stepSize * m[i] / (Math.sqrt(v[i]) / s.correction + s.eps);
    }
  }
}
