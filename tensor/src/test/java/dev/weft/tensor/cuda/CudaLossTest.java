package dev.weft.tensor.cuda;

import static dev.weft.tensor.cuda.AgainstCpu.check;
import static dev.weft.tensor.cuda.Samples.indices;
import static dev.weft.tensor.cuda.Samples.normal;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Softmaxes;
import org.junit.jupiter.api.Test;

/** Losses on the GPU against those of the CPU. */
@CudaTest
class CudaLossTest {
  @Test
  void crossEntropyAndItsGradient() {
    for (DType t : Samples.FLOATS) {
      double tolerance = Samples.tolerance(t);
      for (int classes : new int[] {1, 2, 97, 256, 1024, 1025, 5003}) {
        Tensor x = normal(1, t, 37, classes);
        Tensor target = indices(classes, 37);
        for (String reduction : new String[] {"mean", "sum", "none"}) {
          for (double smoothing : new double[] {0, 0.1}) {
            // Class 3 does not count.
            Attrs a = Attrs.of(reduction, 3L, smoothing);
            boolean none = reduction.equals("none");
            check("cross_entropy", a, tolerance, x, target);
            Tensor g = none ? normal(2, t, 37) : normal(2, t);
            check("cross_entropy_backward", a, tolerance, g, x, target);
          }
        }
      }
    }
  }

  @Test
  void classesInTheSecondOfManyDimensionsAndOneRow() {
    for (DType t : Samples.FLOATS) {
      double tolerance = Samples.tolerance(t);
      Attrs a = Attrs.of("mean", -100L, 0.0);
      Tensor x = normal(1, t, 3, 11, 2, 5);
      Tensor target = indices(11, 30).reshape(3, 2, 5);
      check("cross_entropy", a, tolerance, x, target);
      check("cross_entropy_backward", a, tolerance, normal(2, t), x, target);
      check("nll_loss", a, tolerance, Softmaxes.logSoftmax(x, 1), target);
      check("nll_loss_backward", a, tolerance, normal(2, t), x, target);
      Attrs none = Attrs.of("none", 4L, 0.0);
      check("nll_loss", none, tolerance, x, target);
      check("nll_loss_backward", none, tolerance, normal(2, t, 3, 2, 5), x, target);
      Tensor one = Tensor.of(new long[] {7}, new long[0]);
      check("cross_entropy", a, tolerance, normal(1, t, 11), one);
      check(
          "cross_entropy",
          a,
          tolerance,
          normal(1, t, 5, 11),
          Casts.to(indices(11, 5), DType.INT32));
      check("cross_entropy", Attrs.of("sum", -100L, 0.0), 0, normal(1, t, 0, 11), indices(11, 0));
      check("cross_entropy", a, 0, normal(1, t, 0, 11), indices(11, 0));
    }
  }

  @Test
  void infinitiesAndNaN() {
    double inf = Double.POSITIVE_INFINITY;
    Tensor x =
        Tensor.of(new double[] {-inf, 1, 2, Double.NaN, 1, 2, 1, -inf, -inf, 900, -900, 1}, 4, 3);
    for (DType t : Samples.FLOATS) {
      Tensor target = Tensor.of(new long[] {1, 1, 0, 0}, 4);
      check("cross_entropy", Attrs.of("none", -100L, 0.0), Samples.tolerance(t), x.to(t), target);
    }
  }

  @Test
  void aTargetThatIsNoClassIsReportedAtTheNextSynchronisation() {
    Tensor x = normal(1, DType.FLOAT32, 2, 5).to(AgainstCpu.GPU);
    Tensor target = Tensor.of(new long[] {1, 5}, 2).to(AgainstCpu.GPU);
    assertThatThrownBy(() -> Losses.crossEntropy(x, target).item())
        .isInstanceOf(IndexOutOfBoundsException.class)
        .hasMessageContaining("cross_entropy: index 5 is out of range; expected [0, 4]");
    // Only once, and the device goes on.
    double unused =
        Losses.crossEntropy(x, Tensor.of(new long[] {1, 4}, 2).to(AgainstCpu.GPU)).item();
  }
}
