package dev.weft.tensor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Views;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.nd4j.linalg.api.buffer.DataType;
import org.nd4j.linalg.api.ndarray.INDArray;
import org.nd4j.linalg.factory.Nd4j;
import org.nd4j.linalg.indexing.NDArrayIndex;

class Nd4jTest {
  private static INDArray matrix() {
    return Nd4j.arange(12).castTo(DataType.FLOAT).reshape(3, 4);
  }

  @Test
  void anArrayIsAdoptedWithoutACopy() {
    INDArray array = matrix();
    Tensor t = Tensor.of(array);
    assertThat(t.shape()).containsExactly(3, 4);
    array.putScalar(1, 2, 60);
    assertThat(t.select(0, 1).select(0, 2).item()).isEqualTo(60);
    Tensor unused = InPlace.add(t, 1);
    assertThat(array.getDouble(2, 3)).isEqualTo(12);
  }

  @Test
  void viewsKeepOffsetAndStrides() {
    INDArray array = matrix();
    assertThat(Tensor.of(array.getRow(1)).toFloatArray()).containsExactly(4, 5, 6, 7);
    assertThat(Tensor.of(array.getColumn(2)).toFloatArray()).containsExactly(2, 6, 10);
    INDArray inner = array.get(NDArrayIndex.interval(1, 3), NDArrayIndex.interval(1, 2, 4));
    assertThat(Tensor.of(inner).toFloatArray()).containsExactly(5, 7, 9, 11);
    Tensor transposed = Tensor.of(array.transpose());
    assertThat(transposed.shape()).containsExactly(4, 3);
    assertThat(transposed.toFloatArray()).containsExactly(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11);
    assertThat(Tensor.of(array.dup('f')).toFloatArray())
        .containsExactly(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
  }

  @Test
  void scalarsAndEmptyArraysAreAdopted() {
    Tensor scalar = Tensor.of(Nd4j.scalar(2.5));
    assertThat(scalar.ndim()).isZero();
    assertThat(scalar.item()).isEqualTo(2.5);
    Tensor empty = Tensor.of(Nd4j.create(DataType.FLOAT, 0, 3));
    assertThat(empty.shape()).containsExactly(0, 3);
    assertThat(Tensor.of(new float[0], 0, 3).toNd4j().shape()).containsExactly(0, 3);
  }

  @Test
  void anArrayOverATensorSharesItsMemory() {
    Tensor t = Tensor.of(new float[] {1, 2, 3, 4, 5, 6}, 2, 3);
    INDArray array = t.toNd4j();
    assertThat(array.shape()).containsExactly(2, 3);
    array.putScalar(1, 0, 40);
    assertThat(t.toFloatArray()).containsExactly(1, 2, 3, 40, 5, 6);
    INDArray transposed = t.t().toNd4j();
    assertThat(transposed.getDouble(0, 1)).isEqualTo(40);
    assertThat(transposed.dup('c').data().asFloat()).containsExactly(1, 40, 2, 5, 3, 6);
    assertThat(transposed.add(1).sumNumber().doubleValue()).isEqualTo(63);
    assertThat(Tensor.of(new float[] {7}).toNd4j().getDouble(0)).isEqualTo(7);
  }

  @Test
  void anArrayKeepsTheMemoryOfAClosedScope() {
    INDArray array;
    try (TensorScope scope = TensorScope.open()) {
      array = Tensor.of(new float[] {1, 2, 3}).toNd4j();
      assertThat(scope.size()).isEqualTo(1);
    }
    assertThat(array.sumNumber().doubleValue()).isEqualTo(6);
  }

  @Test
  void repeatedElementsAreCopied() {
    Tensor t = Views.expand(Tensor.of(new float[] {1, 2}), 3, 2);
    INDArray array = t.toNd4j();
    array.putScalar(0, 0, 9);
    assertThat(array.data().asFloat()).containsExactly(9, 2, 1, 2, 1, 2);
    assertThat(t.toFloatArray()).containsExactly(1, 2, 1, 2, 1, 2);
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void everyDTypeGoesThereAndBack(DType dtype) {
    Tensor t = Casts.to(Creation.arange(0, 5, DType.INT64), dtype);
    INDArray array = t.toNd4j();
    Tensor back = Tensor.of(array);
    assertThat(back.dtype()).isEqualTo(dtype);
    assertThat(back.toDoubleArray()).isEqualTo(t.toDoubleArray());
    assertThat(array.getDouble(3)).isEqualTo(t.toDoubleArray()[3]);
  }
}
