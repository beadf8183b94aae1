package dev.weft.tensor.op;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

class RandomTest {
  @Test
  void uniformValuesFillTheirRange() {
    double[] v = Random.rand(new Generator(1), DType.FLOAT64, 100, 100).toDoubleArray();
    assertThat(Arrays.stream(v).min().orElseThrow()).isBetween(0.0, 1e-3);
    assertThat(Arrays.stream(v).max().orElseThrow()).isBetween(1 - 1e-3, Math.nextDown(1.0));
    assertThat(Arrays.stream(v).average().orElseThrow()).isCloseTo(0.5, within(0.01));
    assertThat(Arrays.stream(v).distinct().count()).isEqualTo(10_000);
  }

  @Test
  void normalValuesHaveMeanAndDeviation() {
    Tensor x = Random.randn(new Generator(2), DType.FLOAT32, 20_000);
    assertThat(x.mean().item()).isCloseTo(0, within(0.02));
    assertThat(Statistics.std(x, new int[0], 1, false).item()).isCloseTo(1, within(0.02));
    Tensor y = Random.normal(Tensors.empty(DType.FLOAT32, 20_000), 3, 0.5, new Generator(2));
    assertThat(y.mean().item()).isCloseTo(3, within(0.01));
  }

  @Test
  void integersStayInRange() {
    long[] v = Random.randint(new Generator(3), -2, 3, 1000).toLongArray();
    assertThat(v).containsOnly(-2, -1, 0, 1, 2);
    assertThatThrownBy(() -> Random.randint(new Generator(3), 2, 2, 1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("randint");
  }

  @Test
  void theStreamGoesOnAndCanBeResumed() {
    Generator g = new Generator(4);
    float[] first = Random.rand(g, DType.FLOAT32, 5).toFloatArray();
    long at = g.offset();
    float[] second = Random.rand(g, DType.FLOAT32, 5).toFloatArray();
    assertThat(second).isNotEqualTo(first);
    assertThat(Random.rand(new Generator(4).offset(at), DType.FLOAT32, 5).toFloatArray())
        .isEqualTo(second);
    assertThat(Random.rand(g.manualSeed(4), DType.FLOAT32, 5).toFloatArray()).isEqualTo(first);
    assertThat(Random.rand(new Generator(5), DType.FLOAT32, 5).toFloatArray()).isNotEqualTo(first);
  }

  /** P18: the values of a tensor do not depend on how it is split. */
  @Test
  void aBlockHasTheValuesOfTheWhole() {
    Tensor whole = Random.rand(new Generator(6), DType.FLOAT32, 5, 7);
    for (int dim = 0; dim < 2; dim++) {
      long size = whole.size(dim);
      for (long start = 0; start < size; start += 3) {
        long n = Math.min(3, size - start);
        long[] shape = whole.shape().clone();
        shape[dim] = n;
        long[] from = new long[2];
        from[dim] = start;
        Tensor block =
            Dispatcher.call(
                Catalogue.get("uniform_"),
                Attrs.of(6L, 0L, 0, 1, whole.shape(), from),
                Tensors.empty(DType.FLOAT32, shape));
        assertThat(block.toFloatArray())
            .isEqualTo(Views.narrow(whole, dim, start, n).toFloatArray());
      }
    }
  }

  @Test
  void dropoutIsOffOutsideTraining() {
    Tensor x = Tensor.of(new float[] {1, 2});
    assertThat(Random.dropout(x, 0.5, false, null)).isSameAs(x);
    assertThat(Random.dropout(x, 0, true, null)).isSameAs(x);
    assertThat(Random.dropout(x, 1, true, null).toFloatArray()).containsExactly(0, 0);
    assertThatThrownBy(() -> Random.dropout(x, 1.5, true, null))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("dropout: p 1.5");
  }
}
