package dev.weft.tensor.cpu;

/** Loops of functions of one tensor. */
public final class UnaryLoops {
  private UnaryLoops() {}

  /** -x. */
  public static final Loops NEG =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            for (int i = 0; i < n; i++) {
              out[i] = -x[i];
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            for (int i = 0; i < n; i++) {
              out[i] = -x[i];
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            for (int i = 0; i < n; i++) {
              out[i] = -x[i];
            }
          });

  /** |x|. */
  public static final Loops ABS =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            for (int i = 0; i < n; i++) {
              out[i] = Math.abs(x[i]);
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            for (int i = 0; i < n; i++) {
              out[i] = Math.abs(x[i]);
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            for (int i = 0; i < n; i++) {
              out[i] = Math.abs(x[i]);
            }
          });

  /** x squared. */
  public static final Loops SQUARE =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            for (int i = 0; i < n; i++) {
              out[i] = x[i] * x[i];
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            for (int i = 0; i < n; i++) {
              out[i] = x[i] * x[i];
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            for (int i = 0; i < n; i++) {
              out[i] = x[i] * x[i];
            }
          });

  /** -1, 0 or 1; NaN gives 0 as in PyTorch. */
  public static final Loops SIGN =
      new Loops(
          (in, out, n, a) -> {
            float[] x = in[0];
            for (int i = 0; i < n; i++) {
              out[i] = x[i] > 0 ? 1 : x[i] < 0 ? -1 : 0;
            }
          },
          (in, out, n, a) -> {
            double[] x = in[0];
            for (int i = 0; i < n; i++) {
              out[i] = x[i] > 0 ? 1 : x[i] < 0 ? -1 : 0;
            }
          },
          (in, out, n, a) -> {
            long[] x = in[0];
            for (int i = 0; i < n; i++) {
              out[i] = Long.signum(x[i]);
            }
          });

  /** The largest integer not above x. */
  public static final Loops FLOOR =
      Loops.of(Math::floor).withLongs((in, out, n, a) -> System.arraycopy(in[0], 0, out, 0, n));

  /** The smallest integer not below x. */
  public static final Loops CEIL =
      Loops.of(Math::ceil).withLongs((in, out, n, a) -> System.arraycopy(in[0], 0, out, 0, n));

  /** The nearest integer, the even one of two. */
  public static final Loops ROUND =
      Loops.of(Math::rint).withLongs((in, out, n, a) -> System.arraycopy(in[0], 0, out, 0, n));

  /** e^x. */
  public static final Loops EXP =
      Loops.of(Math::exp).withFloats((in, out, n, a) -> FastMath.exp(in[0], out, n));

  /** ln x. */
  public static final Loops LOG = Loops.of(Math::log);

  /** ln(1 + x). */
  public static final Loops LOG1P = Loops.of(Math::log1p);

  /** The square root. */
  public static final Loops SQRT =
      Loops.of(Math::sqrt)
          .withFloats(
              (in, out, n, a) -> {
                float[] x = in[0];
                for (int i = 0; i < n; i++) {
                  out[i] = (float) Math.sqrt(x[i]);
                }
              });

  /** 1 / sqrt(x). */
  public static final Loops RSQRT = Loops.of(x -> 1 / Math.sqrt(x));

  /** 1 / x. */
  public static final Loops RECIPROCAL =
      Loops.of(x -> 1 / x)
          .withFloats(
              (in, out, n, a) -> {
                float[] x = in[0];
                for (int i = 0; i < n; i++) {
                  out[i] = 1 / x[i];
                }
              });

  /** sin x. */
  public static final Loops SIN = Loops.of(Math::sin);

  /** cos x. */
  public static final Loops COS = Loops.of(Math::cos);

  /** tanh x. */
  public static final Loops TANH = Loops.of(Math::tanh);

  /** The error function. */
  public static final Loops ERF = Loops.of(FastMath::erf);

  /** The angle of (y, x). */
  public static final Loops ATAN2 = Loops.of(Math::atan2);

  /** 1 / (1 + e^-x). */
  public static final Loops SIGMOID =
      Loops.of(FastMath::sigmoid).withFloats((in, out, n, a) -> FastMath.sigmoid(in[0], out, n));
}
