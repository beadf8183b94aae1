package dev.weft.tensor.cpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Views;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class StagingTest {
  /** P59: all permutations, larger than a chunk. */
  @ParameterizedTest
  @EnumSource(DType.class)
  void copiesOfPermutationsKeepTheirElements(DType dtype) {
    Tensor x = Casts.to(Creation.arange(0, 7 * 11 * 31, DType.INT64), dtype).reshape(7, 11, 31);
    double[] values = x.toDoubleArray();
    for (int[] p : List.of(new int[] {0, 2, 1}, new int[] {2, 1, 0}, new int[] {1, 2, 0})) {
      Tensor y = Views.permute(x, p);
      double[] copied = Casts.copy(y).toDoubleArray();
      int k = 0;
      long[] at = new long[3];
      for (long i = 0; i < y.size(0); i++) {
        for (long j = 0; j < y.size(1); j++) {
          for (long l = 0; l < y.size(2); l++) {
            at[p[0]] = i;
            at[p[1]] = j;
            at[p[2]] = l;
            double expected = values[(int) ((at[0] * 11 + at[1]) * 31 + at[2])];
            assertThat(copied[k++]).isEqualTo(expected);
          }
        }
      }
    }
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void manyChunksAreConvertedToEveryDType(DType dtype) {
    Tensor x = Creation.arange(0, 5000, DType.INT64);
    Tensor small = Casts.to(Pointwise.sub(x, Pointwise.mul(x, 1)), dtype); // zeros
    Tensor back = Casts.to(Pointwise.add(Casts.to(small, DType.INT64), x), DType.INT64);
    assertThat(back.toLongArray()).isEqualTo(x.toLongArray());
    Tensor column = Views.expand(Views.unsqueeze(Casts.to(x, dtype), 1), 5000, 3);
    double[] wide = Casts.to(column, DType.FLOAT64).toDoubleArray();
    double[] narrow = Casts.to(x, dtype).toDoubleArray();
    List<Integer> wrong = new ArrayList<>();
    for (int i = 0; i < wide.length; i++) {
      if (wide[i] != narrow[i / 3]) {
        wrong.add(i);
      }
    }
    assertThat(wrong).isEmpty();
  }

  @Test
  void overlappingInPlaceChangesReadBeforeTheyWrite() {
    StridedTensor x = Creation.arange(0, 3000, DType.FLOAT32);
    Tensor unused = InPlace.copy(Views.narrow(x, 0, 1, 2999), Views.narrow(x, 0, 0, 2999));
    float[] shifted = x.toFloatArray();
    assertThat(shifted[0]).isZero();
    assertThat(shifted[2999]).isEqualTo(2998);
    assertThat(shifted[1500]).isEqualTo(1499);
    StridedTensor m = (StridedTensor) Creation.arange(0, 64 * 64, DType.FLOAT32).reshape(64, 64);
    unused = InPlace.add(m, m.t());
    assertThat(m.toFloatArray()[64 + 2]).isEqualTo(66 + 129);
    assertThat(m.toFloatArray()[128 + 1]).isEqualTo(66 + 129);
  }

  @Test
  void anExpandedTensorIsNotWritten() {
    Tensor x = Views.expand(Tensor.of(new float[] {1, 2}), 3, 2);
    assertThatThrownBy(() -> InPlace.add(x, 1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("clone");
    assertThatThrownBy(() -> InPlace.copy(x, Tensor.of(new float[] {1})))
        .isInstanceOf(IllegalArgumentException.class);
  }

  /** Sums of narrow types do not stop where one more no longer counts. */
  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"BFLOAT16", "FLOAT16"})
  void narrowTypesAreSummedWide(DType dtype) {
    Tensor ones = Casts.to(Creation.ones(DType.FLOAT32, 4, 5000), dtype);
    assertThat(ones.sum(1).toDoubleArray()).containsOnly(dtype == DType.FLOAT16 ? 5000 : 4992);
    assertThat(ones.mean().item()).isEqualTo(1);
    assertThat(ones.t().sum(0).toDoubleArray()).containsOnly(dtype == DType.FLOAT16 ? 5000 : 4992);
  }
}
