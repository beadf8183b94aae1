package dev.weft.tensor.cuda;

import static dev.weft.tensor.cuda.AgainstCpu.check;
import static dev.weft.tensor.cuda.Samples.normal;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Softmaxes;
import dev.weft.tensor.op.Views;
import org.junit.jupiter.api.Test;

/** Softmax on the GPU against that of the CPU. */
@CudaTest
class CudaSoftmaxTest {
  @Test
  void allLengthsForwardAndBackward() {
    for (DType t : Samples.FLOATS) {
      double tolerance = Samples.tolerance(t);
      for (int n : new int[] {1, 2, 31, 128, 129, 1024, 1025, 9000}) {
        Tensor x = normal(1, t, 5, n);
        Tensor g = normal(2, t, 5, n);
        check("softmax", Attrs.of(1), tolerance, x);
        check("log_softmax", Attrs.of(1), tolerance, x);
        check("softmax_backward", Attrs.of(1), tolerance, g, Softmaxes.softmax(x, 1));
        // The sum over n gradients is rounded relative to their size.
        double sums = t == DType.FLOAT64 || t == DType.FLOAT32 ? 10 * tolerance : tolerance;
        check("log_softmax_backward", Attrs.of(1), sums, g, Softmaxes.logSoftmax(x, 1));
      }
    }
  }

  @Test
  void otherDimensionsViewsAndNothing() {
    for (DType t : Samples.FLOATS) {
      double tolerance = Samples.tolerance(t);
      Tensor x = normal(1, t, 4, 33, 7);
      Tensor g = normal(2, t, 4, 33, 7);
      for (int d = 0; d < 3; d++) {
        check("softmax", Attrs.of(d), tolerance, x);
        check("log_softmax", Attrs.of(d), tolerance, x);
        check("softmax_backward", Attrs.of(d), tolerance, g, Softmaxes.softmax(x, d));
        check("log_softmax_backward", Attrs.of(d), 4 * tolerance, g, Softmaxes.logSoftmax(x, d));
      }
      check("softmax", Attrs.of(1), tolerance, Views.transpose(normal(1, t, 9, 5), 0, 1));
      check("softmax", Attrs.of(1), tolerance, normal(1, t, 0, 5));
      check("softmax", Attrs.of(0), tolerance, normal(1, t));
    }
  }

  @Test
  void infinitiesAndNaN() {
    double inf = Double.POSITIVE_INFINITY;
    Tensor x =
        Tensor.of(
            new double[] {
              -inf, 1, 2, -inf, -inf, -inf, Double.NaN, 1, 2, inf, 1, 2, 1000, -1000, 0
            },
            5,
            3);
    for (DType t : Samples.FLOATS) {
      check("softmax", Attrs.of(1), Samples.tolerance(t), x.to(t));
      check("log_softmax", Attrs.of(1), Samples.tolerance(t), x.to(t));
      check("softmax", Attrs.of(0), Samples.tolerance(t), x.t().contiguous().to(t));
    }
  }
}
