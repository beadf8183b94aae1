package dev.weft.tensor.cpu;

/** Loops of comparisons and logic; results are 0 or 1. */
public final class CompareLoops {
  private CompareLoops() {}

  private interface F {
    boolean test(float x, float y);
  }

  private interface D {
    boolean test(double x, double y);
  }

  private interface L {
    boolean test(long x, long y);
  }

  /** Two tensors, or a tensor and attribute 0 where there is one input. */
  private static Loops of(F f, D d, L l) {
    return new Loops(
        (in, out, n, a) -> {
          float[] x = in[0];
          if (in.length > 1) {
            float[] y = in[1];
            for (int i = 0; i < n; i++) {
              out[i] = f.test(x[i], y[i]) ? 1 : 0;
            }
          } else {
            float v = a.get(0, Number.class).floatValue();
            for (int i = 0; i < n; i++) {
              out[i] = f.test(x[i], v) ? 1 : 0;
            }
          }
        },
        (in, out, n, a) -> {
          double[] x = in[0];
          for (int i = 0; i < n; i++) {
            out[i] = d.test(x[i], in.length > 1 ? in[1][i] : a.doubleAt(0)) ? 1 : 0;
          }
        },
        (in, out, n, a) -> {
          long[] x = in[0];
          for (int i = 0; i < n; i++) {
            out[i] = l.test(x[i], in.length > 1 ? in[1][i] : a.longAt(0)) ? 1 : 0;
          }
        });
  }

  /** Equal. */
  public static final Loops EQ = of((x, y) -> x == y, (x, y) -> x == y, (x, y) -> x == y);

  /** Not equal. */
  public static final Loops NE = of((x, y) -> x != y, (x, y) -> x != y, (x, y) -> x != y);

  /** Less. */
  public static final Loops LT = of((x, y) -> x < y, (x, y) -> x < y, (x, y) -> x < y);

  /** Less or equal. */
  public static final Loops LE = of((x, y) -> x <= y, (x, y) -> x <= y, (x, y) -> x <= y);

  /** Greater. */
  public static final Loops GT = of((x, y) -> x > y, (x, y) -> x > y, (x, y) -> x > y);

  /** Greater or equal. */
  public static final Loops GE = of((x, y) -> x >= y, (x, y) -> x >= y, (x, y) -> x >= y);

  /** Both not 0. */
  public static final Loops AND =
      of((x, y) -> x != 0 && y != 0, (x, y) -> x != 0 && y != 0, (x, y) -> x != 0 && y != 0);

  /** One not 0. */
  public static final Loops OR =
      of((x, y) -> x != 0 || y != 0, (x, y) -> x != 0 || y != 0, (x, y) -> x != 0 || y != 0);

  /** Exactly one not 0. */
  public static final Loops XOR =
      of(
          (x, y) -> (x != 0) != (y != 0),
          (x, y) -> (x != 0) != (y != 0),
          (x, y) -> (x != 0) != (y != 0));

  /** Equal to 0. */
  public static final Loops NOT =
      new Loops(
          (in, out, n, a) -> {
            for (int i = 0; i < n; i++) {
              out[i] = in[0][i] == 0 ? 1 : 0;
            }
          },
          (in, out, n, a) -> {
            for (int i = 0; i < n; i++) {
              out[i] = in[0][i] == 0 ? 1 : 0;
            }
          },
          (in, out, n, a) -> {
            for (int i = 0; i < n; i++) {
              out[i] = in[0][i] == 0 ? 1 : 0;
            }
          });

  /** Not a number. */
  public static final Loops IS_NAN =
      new Loops(
          (in, out, n, a) -> {
            for (int i = 0; i < n; i++) {
              out[i] = Float.isNaN(in[0][i]) ? 1 : 0;
            }
          },
          (in, out, n, a) -> {
            for (int i = 0; i < n; i++) {
              out[i] = Double.isNaN(in[0][i]) ? 1 : 0;
            }
          },
          (in, out, n, a) -> java.util.Arrays.fill(out, 0, n, 0));
}
