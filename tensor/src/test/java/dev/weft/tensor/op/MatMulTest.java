package dev.weft.tensor.op;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class MatMulTest {
  private static double[] naive(double[] a, double[] b, int m, int k, int n) {
    double[] c = new double[m * n];
    for (int i = 0; i < m; i++) {
      for (int j = 0; j < n; j++) {
        for (int l = 0; l < k; l++) {
          c[i * n + j] += a[i * k + l] * b[l * n + j];
        }
      }
    }
    return c;
  }

  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"BOOL"},
      mode = EnumSource.Mode.EXCLUDE)
  void everyLayoutGivesTheProduct(DType dtype) {
    int m = 5;
    int k = 7;
    int n = 3;
    Tensor a = Casts.to(Random.randint(new Generator(1), 0, 4, m, k), dtype);
    Tensor b = Casts.to(Random.randint(new Generator(2), 0, 4, k, n), dtype);
    double[] expected = naive(a.toDoubleArray(), b.toDoubleArray(), m, k, n);
    for (Tensor x : layouts(a)) {
      for (Tensor y : layouts(b)) {
        assertThat(MatMul.mm(x, y).toDoubleArray()).isEqualTo(expected);
        assertThat(MatMul.linear(x, y.t().contiguous(), null).toDoubleArray()).isEqualTo(expected);
        assertThat(MatMul.linear(x, y.t(), null).toDoubleArray()).isEqualTo(expected);
        assertThat(MatMul.contractLeading(x.t(), y).toDoubleArray()).isEqualTo(expected);
      }
    }
  }

  /** The matrix as it is, column-major, inside a larger one, and every other column. */
  private static Tensor[] layouts(Tensor a) {
    Tensor wide = Joins.cat(java.util.List.of(a, a), 1);
    return new Tensor[] {
      a,
      Views.t(Casts.copy(Views.t(a))),
      Views.narrow(wide, 1, a.size(1), a.size(1)),
      Views.select(Joins.stack(java.util.List.of(a, a), 2), 2, 1)
    };
  }

  @Test
  void oneRowAndOneColumnAreProducts() {
    Tensor row = Tensor.of(new float[] {1, 2, 3}, 1, 3);
    Tensor column = row.t();
    assertThat(MatMul.mm(row, column).toFloatArray()).containsExactly(14);
    assertThat(MatMul.mm(column, row).toFloatArray()).containsExactly(1, 2, 3, 2, 4, 6, 3, 6, 9);
    Tensor repeated = Views.expand(Tensor.of(new float[] {1, 2, 3}, 3, 1), 3, 4);
    assertThat(MatMul.mm(row, repeated).toFloatArray()).containsExactly(14, 14, 14, 14);
  }

  /** Heads of an attention layer: permuted views are multiplied without a copy. */
  @Test
  void batchesOfPermutedViews() {
    Tensor q = Random.randn(new Generator(3), DType.FLOAT32, 2, 5, 3, 4);
    Tensor k = Random.randn(new Generator(4), DType.FLOAT32, 2, 5, 3, 4);
    Tensor scores = MatMul.matmul(q.permute(0, 2, 1, 3), k.permute(0, 2, 3, 1));
    assertThat(scores.shape()).containsExactly(2, 3, 5, 5);
    for (int b = 0; b < 2; b++) {
      for (int h = 0; h < 3; h++) {
        double[] x = q.select(0, b).select(1, h).toDoubleArray();
        double[] y = k.select(0, b).select(1, h).t().toDoubleArray();
        assertThat(scores.select(0, b).select(0, h).toDoubleArray())
            .containsExactly(naive(x, y, 5, 4, 5), within(1e-5));
      }
    }
  }

  /** P05: a contraction of size 0 leaves the bias. */
  @Test
  void anEmptyContractionGivesTheBias() {
    Tensor bias = Tensor.of(new float[] {1, 2, 3, 4});
    Tensor x = Creation.zeros(DType.FLOAT32, 12, 0);
    Tensor product = MatMul.addmm(bias, x, Creation.zeros(DType.FLOAT32, 0, 4));
    assertThat(product.shape()).containsExactly(12, 4);
    assertThat(product.select(0, 11).toFloatArray()).containsExactly(1, 2, 3, 4);
    assertThat(MatMul.linear(x, Creation.zeros(DType.FLOAT32, 4, 0), bias).toFloatArray())
        .isEqualTo(product.toFloatArray());
  }

  /** P06: products of empty matrices are zeros. */
  @Test
  void emptyProductsAreZeros() {
    Tensor a = Creation.zeros(DType.FLOAT32, 4, 0);
    Tensor b = Creation.zeros(DType.FLOAT32, 0, 3);
    assertThat(MatMul.mm(a, b).toFloatArray()).containsExactly(new float[12]);
    assertThat(MatMul.mm(b, Creation.ones(DType.FLOAT32, 3, 2)).shape()).containsExactly(0, 2);
    assertThat(MatMul.contractLeading(a.t(), b).toFloatArray()).containsExactly(new float[12]);
  }

  @Test
  void theFirstFactorOfBetaZeroIsNotRead() {
    Tensor nan = Tensor.of(new float[] {Float.NaN});
    Tensor one = Creation.ones(DType.FLOAT32, 1, 1);
    assertThat(MatMul.addmm(nan, one, one, 0, 3).item()).isEqualTo(3);
  }

  @Test
  void refusalsNameOperatorAndShapes() {
    Tensor a = Creation.zeros(DType.FLOAT32, 2, 3);
    assertThatThrownBy(() -> MatMul.mm(a, a))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("mm: shapes [2, 3] and [2, 3] cannot be multiplied");
    assertThatThrownBy(() -> MatMul.matmul(a, Casts.to(a, DType.FLOAT64).t()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("matmul: tensors have dtypes float32 and float64");
    assertThatThrownBy(() -> MatMul.linear(a, a.t(), null))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("linear: input has shape [2, 3]; expected the last dimension 2");
  }
}
