package dev.weft.tensor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Compare;
import dev.weft.tensor.op.Creation;
import org.junit.jupiter.api.Test;

/** Texts as PyTorch 2.13 prints them, but for Java's spelling of the options. */
class TensorFormatTest {
  @Test
  void wholeNumbersHaveNoFraction() {
    assertThat(Tensor.of(new float[] {1, 2, -3, 40}, 2, 2))
        .hasToString("tensor([[ 1.,  2.],\n        [-3., 40.]])");
    assertThat(Tensor.of(new long[] {1, -20})).hasToString("tensor([  1, -20])");
  }

  @Test
  void fractionsHaveFourDigits() {
    assertThat(Tensor.of(new float[] {0.5f, 2, Float.NaN, Float.NEGATIVE_INFINITY}))
        .hasToString("tensor([0.5000, 2.0000,    nan,   -inf])");
    assertThat(Tensor.of(new double[] {1e-6, 0.25}))
        .hasToString("tensor([1.0000e-06, 2.5000e-01], dtype=float64)");
  }

  @Test
  void scalarsEmptyAndBoolTensors() {
    assertThat(Tensor.of(new float[] {3}, new long[0])).hasToString("tensor(3.)");
    assertThat(Tensor.of(new float[0], 0, 2)).hasToString("tensor([], size=[0, 2])");
    assertThat(Compare.gt(Tensor.of(new float[] {-1, 1}), 0)).hasToString("tensor([false,  true])");
  }

  @Test
  void largeTensorsAreSummarised() {
    assertThat(Creation.arange(0, 1001, DType.INT64))
        .hasToString("tensor([   0,    1,    2, ...,  998,  999, 1000])");
    assertThat(
            Casts.to(Creation.arange(0, 5000, DType.INT64), DType.INT32)
                .reshape(50, 100)
                .toString())
        .isEqualTo(
            "tensor([[   0,    1,    2, ...,   97,   98,   99],\n"
                + "        [ 100,  101,  102, ...,  197,  198,  199],\n"
                + "        [ 200,  201,  202, ...,  297,  298,  299],\n"
                + "        ...,\n"
                + "        [4700, 4701, 4702, ..., 4797, 4798, 4799],\n"
                + "        [4800, 4801, 4802, ..., 4897, 4898, 4899],\n"
                + "        [4900, 4901, 4902, ..., 4997, 4998, 4999]], dtype=int32)");
  }

  @Test
  void gradientsAndFreedMemoryAreNamed() {
    Tensor x = Tensor.of(new float[] {1}).requiresGrad(true);
    assertThat(x).hasToString("tensor(1., requiresGrad=true)");
    assertThat(x.mul(2)).hasToString("tensor(2., gradFn=mul_scalar)");
    Tensor y = Tensor.of(new float[] {1, 2});
    y.close();
    assertThat(y.toString()).contains("freed");
  }
}
