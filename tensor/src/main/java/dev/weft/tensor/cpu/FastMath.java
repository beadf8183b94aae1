package dev.weft.tensor.cpu;

import dev.weft.tensor.memory.Memory;

/** Elementary functions that the JDK lacks or that must vectorise. Stateless. */
final class FastMath {
  private FastMath() {}

  private static final float LOG2_E = (float) (1 / Math.log(2));
  // ln 2 in two parts; products of the first with small integers are exact.
  private static final float LN2_HIGH = 355f / 512;
  private static final float LN2_LOW = (float) (Math.log(2) - LN2_HIGH);
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
  private static final float ROUND = 12582912f;
  private static final int ROUND_BITS = 0x4B400000;

  /**
   * The exponential of {@code n} floats; {@code out} may be {@code x}. Within 1 ulp or so over the
   * whole range, subnormal results included; NaN stays NaN.
   *
   * <p>Argument reduction x = k ln 2 + r, a polynomial in r, and a scaling by 2^k in two steps, all
   * in loops that the JIT compiler vectorises.
   */
  static void exp(float[] x, float[] out, int n) {
    Scratch scratch = Scratch.get();
    float[] scale = scratch.floats(6, n);
    float[] scale2 = scratch.floats(7, n);
    int[] k = scratch.ints(0, n);
    int[] k2 = scratch.ints(1, n);
    for (int i = 0; i < n; i++) {
      float v = Math.min(Math.max(x[i], -105f), 90f);
      float t = v * LOG2_E + ROUND;
      scale[i] = t;
      float m = t - ROUND;
      float r = (v - m * LN2_HIGH) - m * LN2_LOW;
      float p = 1f / 5040;
      p = p * r + 1f / 720;
      p = p * r + 1f / 120;
      p = p * r + 1f / 24;
      p = p * r + 1f / 6;
      p = p * r + 0.5f;
      out[i] = (p * r) * r + r + 1f;
    }
    Memory.bits(scale, k, n);
    for (int i = 0; i < n; i++) {
      int e = k[i] - ROUND_BITS;
      int half = e >> 1;
      k[i] = (half + 127) << 23;
      k2[i] = (e - half + 127) << 23;
    }
    Memory.bits(k, scale, n);
    Memory.bits(k2, scale2, n);
    for (int i = 0; i < n; i++) {
      out[i] = out[i] * scale[i] * scale2[i];
    }
  }

  /** The logistic function of {@code n} floats; {@code out} may be {@code x}. */
  static void sigmoid(float[] x, float[] out, int n) {
    for (int i = 0; i < n; i++) {
      out[i] = -x[i];
    }
    exp(out, out, n);
    for (int i = 0; i < n; i++) {
      out[i] = 1f / (1f + out[i]);
    }
  }

  static double sigmoid(double x) {
    return 1 / (1 + Math.exp(-x));
  }

  // Chebyshev series of (1 + 2x) e^(x^2) erfc(x) in (x - 3.75) / (x + 3.75), fitted for x >= 0.
  private static final double[] ERFC = {
    2.3551578691348034,
    -0.004590054580646381,
    -0.08424913336651792,
    0.05920993999819192,
    -0.026658668435305902,
    0.009074997670705347,
    -0.0024131635404175534,
    0.0004907758365259163,
    -6.916973302507845e-05,
    4.139027986056476e-06,
    7.740383065080181e-07,
    -2.1886401016857348e-07,
    1.0764999403001242e-08,
    4.521959704462119e-09,
    -7.754400055404177e-10,
    -6.31805896489368e-11,
    2.8687812125838263e-11,
    1.9442225607235742e-13,
    -9.65485469350824e-13,
    3.275602011854062e-14,
    3.3351099659739706e-14,
    -1.807443084089755e-15,
    -1.6564527527407336e-15,
    1.8207657603852569e-16
  };

  /** The error function, to about 1e-15. */
  static double erf(double x) {
    double a = Math.abs(x);
    if (a < 0.5) {
      // 2/sqrt(pi) times the Maclaurin series; the terms fall at least fourfold.
      double square = x * x;
      double term = x;
      double sum = x;
      for (int i = 1; i < 16; i++) {
        term *= -square / i;
        sum += term / (2 * i + 1);
      }
      return 2 / Math.sqrt(Math.PI) * sum;
    }
    if (a > 6) {
      return Math.copySign(1, x);
    }
    double y = (a - 3.75) / (a + 3.75);
    double b0 = 0;
    double b1 = 0;
    for (int j = ERFC.length - 1; j > 0; j--) {
      double b = 2 * y * b0 - b1 + ERFC[j];
      b1 = b0;
      b0 = b;
    }
    double scaled = y * b0 - b1 + ERFC[0] / 2;
    double erfc = Math.exp(-a * a) * scaled / (1 + 2 * a);
    return Math.copySign(1 - erfc, x);
  }
}
