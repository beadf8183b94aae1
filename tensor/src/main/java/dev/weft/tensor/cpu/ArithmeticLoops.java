package dev.weft.tensor.cpu;

/** Loops of the arithmetic operators. */
public final class ArithmeticLoops {
  private ArithmeticLoops() {}

  /** x + alpha y; alpha is attribute 0, 1 where absent. */
  public static final Loops ADD =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float[] y = in[1];
            if (a.isNull(0)) {
              for (int i = 0; i < n; i++) {
                out[i] = x[i] + y[i];
              }
            } else {
              float alpha = (float) a.doubleAt(0);
              for (int i = 0; i < n; i++) {
                out[i] = x[i] + alpha * y[i];
              }
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double[] y = in[1];
            double alpha = a.isNull(0) ? 1 : a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] + alpha * y[i];
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            long[] y = in[1];
            long alpha = a.isNull(0) ? 1 : a.longAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] + alpha * y[i];
            }
          });

  /** x - alpha y; alpha is attribute 0, 1 where absent. */
  public static final Loops SUB =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float[] y = in[1];
            if (a.isNull(0)) {
              for (int i = 0; i < n; i++) {
                out[i] = x[i] - y[i];
              }
            } else {
              float alpha = (float) a.doubleAt(0);
              for (int i = 0; i < n; i++) {
                out[i] = x[i] - alpha * y[i];
              }
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double[] y = in[1];
            double alpha = a.isNull(0) ? 1 : a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] - alpha * y[i];
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            long[] y = in[1];
            long alpha = a.isNull(0) ? 1 : a.longAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] - alpha * y[i];
            }
          });

  /** x y. */
  public static final Loops MUL =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float[] y = in[1];
            for (int i = 0; i < n; i++) {
              out[i] = x[i] * y[i];
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double[] y = in[1];
            for (int i = 0; i < n; i++) {
              out[i] = x[i] * y[i];
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            long[] y = in[1];
            for (int i = 0; i < n; i++) {
              out[i] = x[i] * y[i];
            }
          });

  /** x / y, never in integers. */
  public static final Loops DIV =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float[] y = in[1];
            for (int i = 0; i < n; i++) {
              out[i] = x[i] / y[i];
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double[] y = in[1];
            for (int i = 0; i < n; i++) {
              out[i] = x[i] / y[i];
            }
          },
          null);

  /** x + value. */
  public static final Loops ADD_SCALAR =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float v = a.get(0, Number.class).floatValue();
            for (int i = 0; i < n; i++) {
              out[i] = x[i] + v;
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double v = a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] + v;
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            long v = a.longAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] + v;
            }
          });

  /** x - value. */
  public static final Loops SUB_SCALAR =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float v = a.get(0, Number.class).floatValue();
            for (int i = 0; i < n; i++) {
              out[i] = x[i] - v;
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double v = a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] - v;
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            long v = a.longAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] - v;
            }
          });

  /** value - x. */
  public static final Loops RSUB_SCALAR =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float v = a.get(0, Number.class).floatValue();
            for (int i = 0; i < n; i++) {
              out[i] = v - x[i];
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double v = a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = v - x[i];
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            long v = a.longAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = v - x[i];
            }
          });

  /** x value. */
  public static final Loops MUL_SCALAR =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float v = a.get(0, Number.class).floatValue();
            for (int i = 0; i < n; i++) {
              out[i] = x[i] * v;
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double v = a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] * v;
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            long v = a.longAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] * v;
            }
          });

  /** x / value, never in integers. */
  public static final Loops DIV_SCALAR =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float v = a.get(0, Number.class).floatValue();
            for (int i = 0; i < n; i++) {
              out[i] = x[i] / v;
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double v = a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] / v;
            }
          },
          null);

  /** value / x, never in integers. */
  public static final Loops RDIV_SCALAR =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float v = a.get(0, Number.class).floatValue();
            for (int i = 0; i < n; i++) {
              out[i] = v / x[i];
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double v = a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = v / x[i];
            }
          },
          null);
}
