package dev.weft.tensor.cpu;

import dev.weft.tensor.op.Attrs;
import java.util.function.DoubleBinaryOperator;
import java.util.function.DoubleUnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * An elementwise operator's inner loops over staged chunks, one for each compute type; null where
 * the operator has no meaning in a type. A loop may run in place: the output may be an input array.
 *
 * @param floats for float32, float16 and bfloat16
 * @param doubles for float64
 * @param longs for integers and bool
 */
public record Loops(@Nullable Floats floats, @Nullable Doubles doubles, @Nullable Longs longs) {
  /** A loop in float. */
  @FunctionalInterface
  public interface Floats {
    /** Computes {@code out[0..n)} from the inputs. */
    void run(float[][] in, float[] out, int n, Attrs attrs);
  }

  /** A loop in double. */
  @FunctionalInterface
  public interface Doubles {
    /** Computes {@code out[0..n)} from the inputs. */
    void run(double[][] in, double[] out, int n, Attrs attrs);
  }

  /** A loop in long. */
  @FunctionalInterface
  public interface Longs {
    /** Computes {@code out[0..n)} from the inputs. */
    void run(long[][] in, long[] out, int n, Attrs attrs);
  }

  /** A function of one real number, computed in double for all floating-point types. */
  public static Loops of(DoubleUnaryOperator f) {
    return new Loops(
        (in, out, n, a) -> {
          float[] x = in[0];
          for (int i = 0; i < n; i++) {
            out[i] = (float) f.applyAsDouble(x[i]);
          }
        },
        (in, out, n, a) -> {
          double[] x = in[0];
          for (int i = 0; i < n; i++) {
            out[i] = f.applyAsDouble(x[i]);
          }
        },
        null);
  }

  /** A function of two real numbers, computed in double for all floating-point types. */
  public static Loops of(DoubleBinaryOperator f) {
    return new Loops(
        (in, out, n, a) -> {
          float[] x = in[0];
          float[] y = in[1];
          for (int i = 0; i < n; i++) {
            out[i] = (float) f.applyAsDouble(x[i], y[i]);
          }
        },
        (in, out, n, a) -> {
          double[] x = in[0];
          double[] y = in[1];
          for (int i = 0; i < n; i++) {
            out[i] = f.applyAsDouble(x[i], y[i]);
          }
        },
        null);
  }

  /** The same with a loop for integers. */
  public Loops withLongs(Longs loop) {
    return new Loops(floats, doubles, loop);
  }

  /** The same with another loop for float. */
  public Loops withFloats(Floats loop) {
    return new Loops(loop, doubles, longs);
  }
}
