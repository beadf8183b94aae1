package dev.weft.tensor.cuda;

import static dev.weft.tensor.cuda.AgainstCpu.check;
import static dev.weft.tensor.cuda.Samples.normal;
import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Catalogue;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Views;
import org.junit.jupiter.api.Test;

/** Norms on the GPU against those of the CPU: widths that fit vectors, and that do not. */
@CudaTest
class CudaNormTest {
  private static final int[] WIDTHS = {1, 3, 8, 64, 100, 1000, 1024, 2736, 5000, 40_000};

  @Test
  void forwardAndInputGradient() {
    for (DType t : Samples.FLOATS) {
      double tolerance = Samples.tolerance(t);
      for (int n : WIDTHS) {
        Attrs a = Attrs.of(new long[] {n}, 1e-5);
        Tensor x = normal(1, t, 3, 2, n);
        Tensor w = normal(2, t, n);
        Tensor b = normal(3, t, n);
        Tensor g = normal(4, t, 3, 2, n);
        check("rms_norm", a, tolerance, x);
        check("rms_norm", a, tolerance, x, w);
        check("layer_norm", a, tolerance, x);
        check("layer_norm", a, tolerance, x, w);
        check("layer_norm", a, tolerance, x, w, b);
        check("rms_norm_backward", a, 2 * tolerance, g, x, w);
        check("rms_norm_backward", a, 2 * tolerance, g, x);
        if (n > 1) {
          // With one element the gradient is the difference of equal numbers.
          check("layer_norm_backward", a, 2 * tolerance, g, x, w);
          check("layer_norm_backward", a, 2 * tolerance, g, x);
        }
      }
    }
  }

  @Test
  void resultsInALowerPrecision() {
    for (DType low : new DType[] {DType.BFLOAT16, DType.FLOAT16}) {
      for (int n : new int[] {3, 64, 1000, 1024, 40_000}) {
        Attrs a = Attrs.of(new long[] {n}, 1e-5, low);
        Tensor x = normal(1, DType.FLOAT32, 7, n);
        Tensor w = normal(2, DType.FLOAT32, n);
        Tensor g = normal(3, low, 7, n);
        check("rms_norm", a, Samples.tolerance(low), x, w);
        check("rms_norm_backward", a, 2e-5, g, x, w);
        check("rms_norm_weight_backward", a, 2e-5, g, x);
      }
    }
  }

  @Test
  void weightGradientsOverManyRows() {
    for (DType t : Samples.FLOATS) {
      for (int n : new int[] {3, 64, 1024, 2736}) {
        for (int rows : new int[] {1, 5, 999}) {
          Attrs a = Attrs.of(new long[] {n}, 1e-5);
          double tolerance = Samples.tolerance(t) * (t == DType.FLOAT32 ? Math.sqrt(rows) : 1);
          check(
              "rms_norm_weight_backward",
              a,
              tolerance,
              normal(1, t, rows, n),
              normal(2, t, rows, n));
          check(
              "layer_norm_weight_backward",
              a,
              tolerance,
              normal(1, t, rows, n),
              normal(2, t, rows, n));
        }
      }
    }
  }

  @Test
  void viewsUnalignedTensorsSeveralDimensionsAndNothing() {
    for (DType t : Samples.FLOATS) {
      Attrs a = Attrs.of(new long[] {4, 16}, 1e-5);
      check("rms_norm", a, Samples.tolerance(t), normal(1, t, 5, 4, 16), normal(2, t, 4, 16));
      Tensor turned = Views.transpose(normal(1, t, 64, 6), 0, 1);
      check("layer_norm", Attrs.of(new long[] {64}, 1e-5), Samples.tolerance(t), turned);
      Attrs wide = Attrs.of(new long[] {64}, 1e-5);
      check("rms_norm", wide, 0, normal(1, t, 0, 64), normal(2, t, 64));
      check("rms_norm_weight_backward", wide, 0, normal(1, t, 0, 64), normal(1, t, 0, 64));
      Tensor odd = normal(1, t, 64 * 3 + 1).to(AgainstCpu.GPU).slice(0, 1, 193).reshape(3, 64);
      Tensor aligned = odd.copy();
      Tensor got = Dispatcher.call(Catalogue.get("rms_norm"), wide, odd);
      Tensor expected = Dispatcher.call(Catalogue.get("rms_norm"), wide, aligned);
      AgainstCpu.close("unaligned", expected.to(dev.weft.tensor.Device.CPU), got, 1e-2);
    }
  }

  @Test
  void weightGradientsAreTheSameBitsEveryTime() {
    Attrs a = Attrs.of(new long[] {1024}, 1e-5);
    Tensor g = normal(1, DType.FLOAT32, 4000, 1024).to(AgainstCpu.GPU);
    Tensor x = normal(2, DType.FLOAT32, 4000, 1024).to(AgainstCpu.GPU);
    float[] first =
        Dispatcher.call(Catalogue.get("rms_norm_weight_backward"), a, g, x).toFloatArray();
    for (int i = 0; i < 5; i++) {
      assertThat(Dispatcher.call(Catalogue.get("rms_norm_weight_backward"), a, g, x).toFloatArray())
          .isEqualTo(first);
    }
  }
}
