package dev.weft.tensor.cpu;

/** Loops of powers, extrema, choices and three-operand updates. */
public final class MoreLoops {
  private MoreLoops() {}

  /** x to the power y; integer powers wrap, negative ones of integers are refused before. */
  public static final Loops POW =
      Loops.of(Math::pow)
          .withLongs(
              (in, out, n, a) -> {
                long[] x = in[0];
                long[] y = in[1];
                for (int i = 0; i < n; i++) {
                  out[i] = power(x[i], y[i]);
                }
              });

  /** x to the power of attribute 0. */
  public static final Loops POW_SCALAR =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            double e = a.doubleAt(0);
            if (e == 2) {
              for (int i = 0; i < n; i++) {
                out[i] = x[i] * x[i];
              }
            } else if (e == 1) {
              System.arraycopy(x, 0, out, 0, n);
            } else {
              for (int i = 0; i < n; i++) {
                out[i] = (float) Math.pow(x[i], e);
              }
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double e = a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = e == 2 ? x[i] * x[i] : Math.pow(x[i], e);
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            long e = a.longAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = power(x[i], e);
            }
          });

  /** The larger of two; NaN wins. */
  public static final Loops MAXIMUM =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float[] y = in[1];
            for (int i = 0; i < n; i++) {
              out[i] = Math.max(x[i], y[i]);
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double[] y = in[1];
            for (int i = 0; i < n; i++) {
              out[i] = Math.max(x[i], y[i]);
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            long[] y = in[1];
            for (int i = 0; i < n; i++) {
              out[i] = Math.max(x[i], y[i]);
            }
          });

  /** The smaller of two; NaN wins. */
  public static final Loops MINIMUM =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float[] y = in[1];
            for (int i = 0; i < n; i++) {
              out[i] = Math.min(x[i], y[i]);
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double[] y = in[1];
            for (int i = 0; i < n; i++) {
              out[i] = Math.min(x[i], y[i]);
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            long[] y = in[1];
            for (int i = 0; i < n; i++) {
              out[i] = Math.min(x[i], y[i]);
            }
          });

  /** x held between attributes 0 and 1, either of which may be null; NaN stays. */
  public static final Loops CLAMP =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float low = a.isNull(0) ? Float.NEGATIVE_INFINITY : (float) a.doubleAt(0);
            float high = a.isNull(1) ? Float.POSITIVE_INFINITY : (float) a.doubleAt(1);
            for (int i = 0; i < n; i++) {
              out[i] = Math.min(Math.max(x[i], low), high);
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double low = a.isNull(0) ? Double.NEGATIVE_INFINITY : a.doubleAt(0);
            double high = a.isNull(1) ? Double.POSITIVE_INFINITY : a.doubleAt(1);
            for (int i = 0; i < n; i++) {
              out[i] = Math.min(Math.max(x[i], low), high);
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            long low = a.isNull(0) ? Long.MIN_VALUE : a.longAt(0);
            long high = a.isNull(1) ? Long.MAX_VALUE : a.longAt(1);
            for (int i = 0; i < n; i++) {
              out[i] = Math.min(Math.max(x[i], low), high);
            }
          });

  /** Where input 0 is not 0 input 1, else input 2. */
  public static final Loops WHERE =
      new Loops(
          (in, out, n, a) -> {
            float[] c = in[0];
            float[] x = in[1];
            float[] y = in[2];
            for (int i = 0; i < n; i++) {
              out[i] = c[i] != 0 ? x[i] : y[i];
            }
          },
          (in, out, n, a) -> {
            double[] c = in[0];
            double[] x = in[1];
            double[] y = in[2];
            for (int i = 0; i < n; i++) {
              out[i] = c[i] != 0 ? x[i] : y[i];
            }
          },
          (in, out, n, a) -> {
            long[] c = in[0];
            long[] x = in[1];
            long[] y = in[2];
            for (int i = 0; i < n; i++) {
              out[i] = c[i] != 0 ? x[i] : y[i];
            }
          });

  /** x + value y z; value is attribute 0, 1 where absent. */
  public static final Loops ADDCMUL =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float[] y = in[1];
            float[] z = in[2];
            float v = a.isNull(0) ? 1 : (float) a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] + v * y[i] * z[i];
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double[] y = in[1];
            double[] z = in[2];
            double v = a.isNull(0) ? 1 : a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] + v * y[i] * z[i];
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            long[] y = in[1];
            long[] z = in[2];
            long v = a.isNull(0) ? 1 : a.longAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] + v * y[i] * z[i];
            }
          });

  /** x + value y / z; value is attribute 0, 1 where absent. */
  public static final Loops ADDCDIV =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float[] y = in[1];
            float[] z = in[2];
            float v = a.isNull(0) ? 1 : (float) a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] + v * y[i] / z[i];
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double[] y = in[1];
            double[] z = in[2];
            double v = a.isNull(0) ? 1 : a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] + v * y[i] / z[i];
            }
          },
          null);

  /** x + weight (y - x); the weight is input 2, or attribute 0 where there are two inputs. */
  public static final Loops LERP =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float[] y = in[1];
            if (in.length > 2) {
              float[] w = in[2];
              for (int i = 0; i < n; i++) {
                float d = y[i] - x[i];
                out[i] = w[i] < 0.5f ? x[i] + w[i] * d : y[i] - d * (1 - w[i]);
              }
              return;
            }
            float w = (float) a.doubleAt(0);
            if (w < 0.5f) {
              for (int i = 0; i < n; i++) {
                out[i] = x[i] + w * (y[i] - x[i]);
              }
            } else {
              for (int i = 0; i < n; i++) {
                out[i] = y[i] - (y[i] - x[i]) * (1 - w);
              }
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double[] y = in[1];
            for (int i = 0; i < n; i++) {
              double w = in.length > 2 ? in[2][i] : a.doubleAt(0);
              double d = y[i] - x[i];
              out[i] = w < 0.5 ? x[i] + w * d : y[i] - d * (1 - w);
            }
          },
          null);

  private static long power(long base, long exponent) {
    if (exponent < 0) {
      return base == 1 ? 1 : base == -1 ? ((exponent & 1) == 0 ? 1 : -1) : 0;
    }
    long result = 1;
    long b = base;
    for (long e = exponent; e > 0; e >>= 1) {
      if ((e & 1) != 0) {
        result *= b;
      }
      b *= b;
    }
    return result;
  }
}
