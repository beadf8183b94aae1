package dev.weft.tensor.op;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import java.util.Arrays;
import java.util.function.Function;

/** Compares gradients with central differences, in float64. */
final class GradCheck {
  private static final double STEP = 1e-6;

  private GradCheck() {}

  /** A float64 tensor of distinct values between -1 and 1, away from 0, in no order. */
  static Tensor values(long... shape) {
    return spread(-1, 1, 1, shape);
  }

  /** Distinct values between two bounds; another seed gives others. */
  static Tensor spread(double low, double high, int seed, long... shape) {
    int n = (int) dev.weft.tensor.Shapes.numel(shape);
    double[] v = new double[n];
    for (int i = 0; i < n; i++) {
      // The golden ratio spreads multiples evenly, so no two are close.
      double u = (0.137 + 0.6180339887498949 * (i + 11 * seed)) % 1;
      v[i] = low + (high - low) * u;
    }
    return Tensor.of(v, shape);
  }

  /**
   * Checks the gradients of all inputs of a function that may be called many times.
   *
   * @param f must not change its arguments
   */
  static void check(Function<Tensor[], Tensor> f, Tensor... inputs) {
    try (TensorScope scope = TensorScope.open()) {
      Tensor[] leaves = new Tensor[inputs.length];
      for (int i = 0; i < inputs.length; i++) {
        leaves[i] = inputs[i].alias();
        if (inputs[i].dtype().isFloatingPoint()) {
          leaves[i].requiresGrad(true);
        }
      }
      Tensor y = f.apply(leaves);
      Tensor weights = spread(0.5, 1.5, 3, y.shape());
      y.backward(weights);
      double[] w = weights.toDoubleArray();
      for (int i = 0; i < inputs.length; i++) {
        if (!inputs[i].dtype().isFloatingPoint()) {
          continue;
        }
        Tensor grad = leaves[i].grad();
        assertThat(grad).as("gradient of input %s", i).isNotNull();
        assertThat(grad.shape()).as("shape of gradient %s", i).isEqualTo(inputs[i].shape());
        double[] analytic = grad.toDoubleArray();
        double[] numeric = numeric(f, inputs, i, w);
        for (int k = 0; k < numeric.length; k++) {
          assertThat(analytic[k])
              .as("gradient %s of %s at %s", i, Arrays.toString(analytic), k)
              .isCloseTo(numeric[k], within(1e-6 + 1e-6 * Math.abs(numeric[k])));
        }
      }
    }
  }

  private static double[] numeric(
      Function<Tensor[], Tensor> f, Tensor[] inputs, int i, double[] weights) {
    double[] x = inputs[i].toDoubleArray();
    double[] out = new double[x.length];
    for (int k = 0; k < x.length; k++) {
      double original = x[k];
      x[k] = original + STEP;
      double up = weighted(f, inputs, i, x, weights);
      x[k] = original - STEP;
      double down = weighted(f, inputs, i, x, weights);
      x[k] = original;
      out[k] = (up - down) / (2 * STEP);
    }
    return out;
  }

  private static double weighted(
      Function<Tensor[], Tensor> f, Tensor[] inputs, int i, double[] x, double[] weights) {
    try (TensorScope scope = TensorScope.open()) {
      Tensor[] args = inputs.clone();
      args[i] = Tensor.of(x, inputs[i].shape());
      double[] y = Autograd.noGrad(() -> f.apply(args).toDoubleArray());
      double sum = 0;
      for (int k = 0; k < y.length; k++) {
        sum += weights[k] * y[k];
      }
      return sum;
    }
  }
}
