package dev.weft.tensor.cpu;

import dev.weft.tensor.StridedTensor;

/** silu(a) b and its gradients in one pass; tensors of one shape. */
public final class GatedKernels {
  private static final int CHUNK = Scratch.CHUNK;

  private GatedKernels() {}

  /** out = silu(a) b. */
  public static void swiglu(StridedTensor a, StridedTensor b, StridedTensor out) {
    long n = out.numel();
    Cursor as = new Cursor(a);
    Cursor bs = new Cursor(b);
    Cursor to = new Cursor(out);
    Scratch scratch = Scratch.get();
    if (Compute.of(out.dtype()) == Compute.DOUBLE) {
      double[] x = scratch.doubles(0, CHUNK);
      double[] y = scratch.doubles(1, CHUNK);
      for (long done = 0; done < n; done += CHUNK) {
        int size = (int) Math.min(CHUNK, n - done);
        as.read(x, 0, size);
        bs.read(y, 0, size);
        for (int i = 0; i < size; i++) {
          x[i] = x[i] / (1 + Math.exp(-x[i])) * y[i];
        }
        to.write(x, 0, size);
      }
      return;
    }
    float[] x = scratch.floats(0, CHUNK);
    float[] y = scratch.floats(1, CHUNK);
    float[] e = scratch.floats(2, CHUNK);
    for (long done = 0; done < n; done += CHUNK) {
      int size = (int) Math.min(CHUNK, n - done);
      as.read(x, 0, size);
      bs.read(y, 0, size);
      negativeExp(x, e, size);
      for (int i = 0; i < size; i++) {
        x[i] = x[i] / (1 + e[i]) * y[i];
      }
      to.write(x, 0, size);
    }
  }

  private static void negativeExp(float[] x, float[] e, int size) {
    for (int i = 0; i < size; i++) {
      e[i] = -x[i];
    }
    FastMath.exp(e, e, size);
  }

  /** With s = 1 / (1 + e^-a): the gradients g b s (1 + a (1 - s)) of a and g a s of b. */
  public static void swigluBackward(
      StridedTensor g, StridedTensor a, StridedTensor b, StridedTensor ga, StridedTensor gb) {
    long n = ga.numel();
    Cursor gs = new Cursor(g);
    Cursor as = new Cursor(a);
    Cursor bs = new Cursor(b);
    Cursor toA = new Cursor(ga);
    Cursor toB = new Cursor(gb);
    Scratch scratch = Scratch.get();
    if (Compute.of(ga.dtype()) == Compute.DOUBLE) {
      double[] d = scratch.doubles(0, CHUNK);
      double[] x = scratch.doubles(1, CHUNK);
      double[] y = scratch.doubles(2, CHUNK);
      for (long done = 0; done < n; done += CHUNK) {
        int size = (int) Math.min(CHUNK, n - done);
        gs.read(d, 0, size);
        as.read(x, 0, size);
        bs.read(y, 0, size);
        for (int i = 0; i < size; i++) {
          double s = 1 / (1 + Math.exp(-x[i]));
          y[i] = d[i] * y[i] * s * (1 + x[i] * (1 - s));
          x[i] = d[i] * x[i] * s;
        }
        toA.write(y, 0, size);
        toB.write(x, 0, size);
      }
      return;
    }
    float[] d = scratch.floats(0, CHUNK);
    float[] x = scratch.floats(1, CHUNK);
    float[] y = scratch.floats(2, CHUNK);
    float[] e = scratch.floats(3, CHUNK);
    for (long done = 0; done < n; done += CHUNK) {
      int size = (int) Math.min(CHUNK, n - done);
      gs.read(d, 0, size);
      as.read(x, 0, size);
      bs.read(y, 0, size);
      negativeExp(x, e, size);
      for (int i = 0; i < size; i++) {
        float s = 1 / (1 + e[i]);
        y[i] = d[i] * y[i] * s * (1 + x[i] * (1 - s));
        x[i] = d[i] * x[i] * s;
      }
      toA.write(y, 0, size);
      toB.write(x, 0, size);
    }
  }
}
