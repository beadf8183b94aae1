package dev.weft.tensor.cpu;

import java.util.function.DoubleBinaryOperator;

/** Loops of activation functions and of their derivatives times a gradient (input 0). */
public final class ActivationLoops {
  private ActivationLoops() {}

  private static final double SQRT_HALF = Math.sqrt(0.5);
  private static final double INV_SQRT_2PI = 1 / Math.sqrt(2 * Math.PI);
  private static final double TANH_SCALE = Math.sqrt(2 / Math.PI);
  private static final double TANH_CUBIC = 0.044715;

  /** max(x, 0); NaN stays. */
  public static final Loops RELU =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            for (int i = 0; i < n; i++) {
              out[i] = Math.max(x[i], 0f);
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            for (int i = 0; i < n; i++) {
              out[i] = Math.max(x[i], 0.0);
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            for (int i = 0; i < n; i++) {
              out[i] = Math.max(x[i], 0);
            }
          });

  /** g where y > 0, else 0. */
  public static final Loops RELU_BACKWARD =
      new Loops(
          (in, out, n, a) -> {
            float[] g = in[0];
            float[] y = in[1];
            for (int i = 0; i < n; i++) {
              out[i] = y[i] > 0 ? g[i] : 0;
            }
          },
          (in, out, n, a) -> {
            double[] g = in[0];
            double[] y = in[1];
            for (int i = 0; i < n; i++) {
              out[i] = y[i] > 0 ? g[i] : 0;
            }
          },
          null);

  /** x where positive, else attribute 0 times x. */
  public static final Loops LEAKY_RELU =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            float slope = (float) a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] > 0 ? x[i] : x[i] * slope;
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            double slope = a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] > 0 ? x[i] : x[i] * slope;
            }
          },
          null);

  /** g where x is positive, else attribute 0 times g. */
  public static final Loops LEAKY_RELU_BACKWARD =
      new Loops(
          (in, out, n, a) -> {
            float[] g = in[0];
            float[] x = in[1];
            float slope = (float) a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] > 0 ? g[i] : g[i] * slope;
            }
          },
          (in, out, n, a) -> {
            double[] g = in[0];
            double[] x = in[1];
            double slope = a.doubleAt(0);
            for (int i = 0; i < n; i++) {
              out[i] = x[i] > 0 ? g[i] : g[i] * slope;
            }
          },
          null);

  /** x / (1 + e^-x). */
  public static final Loops SILU =
      Loops.of(x -> x * FastMath.sigmoid(x))
          .withFloats(
              (in, out, n, a) -> {
                float[] x = in[0];
                FastMath.sigmoid(x, out, n);
                for (int i = 0; i < n; i++) {
                  out[i] = x[i] * out[i];
                }
              });

  /** g s (1 + x (1 - s)) with s the logistic function of x. */
  public static final Loops SILU_BACKWARD =
      Loops.of(
              (DoubleBinaryOperator)
                  (g, x) -> {
                    double s = FastMath.sigmoid(x);
                    return g * s * (1 + x * (1 - s));
                  })
          .withFloats(
              (in, out, n, a) -> {
                float[] g = in[0];
                float[] x = in[1];
                FastMath.sigmoid(x, out, n);
                for (int i = 0; i < n; i++) {
                  float s = out[i];
                  out[i] = g[i] * s * (1 + x[i] * (1 - s));
                }
              });

  /** g (1 - y) y. */
  public static final Loops SIGMOID_BACKWARD =
      Loops.of((DoubleBinaryOperator) (g, y) -> g * (1 - y) * y);

  /** g (1 - y^2). */
  public static final Loops TANH_BACKWARD =
      Loops.of((DoubleBinaryOperator) (g, y) -> g * (1 - y * y));

  /** x times the normal distribution function; Hendrycks and Gimpel, arXiv:1606.08415. */
  public static final Loops GELU = Loops.of(x -> x * normal(x));

  /** Its derivative times g. */
  public static final Loops GELU_BACKWARD =
      Loops.of(
          (DoubleBinaryOperator)
              (g, x) -> g * (normal(x) + x * INV_SQRT_2PI * Math.exp(-0.5 * x * x)));

  /** The approximation with tanh, of the same paper. */
  public static final Loops GELU_TANH =
      Loops.of(x -> 0.5 * x * (1 + Math.tanh(TANH_SCALE * (x + TANH_CUBIC * x * x * x))));

  /** Its derivative times g. */
  public static final Loops GELU_TANH_BACKWARD =
      Loops.of(
          (DoubleBinaryOperator)
              (g, x) -> {
                double t = Math.tanh(TANH_SCALE * (x + TANH_CUBIC * x * x * x));
                double inner = TANH_SCALE * (1 + 3 * TANH_CUBIC * x * x);
                return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner);
              });

  private static double normal(double x) {
    return 0.5 * (1 + FastMath.erf(x * SQRT_HALF));
  }
}
