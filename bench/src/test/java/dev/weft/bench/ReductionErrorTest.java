package dev.weft.bench;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.DType;
import org.junit.jupiter.api.Test;

class ReductionErrorTest {
  @Test
  void theErrorOfASumOverRanksDoesNotGrowWithTheirNumber() {
    // Half a unit in the last place: 2^-9 for bfloat16, 2^-12 for float16; its rms is smaller.
    for (int ranks : new int[] {2, 8, 32}) {
      assertThat(ReductionError.of(DType.BFLOAT16, ranks)[0]).isLessThan(0x1p-9);
      assertThat(ReductionError.of(DType.FLOAT16, ranks)[0]).isLessThan(0x1p-12);
    }
  }

  @Test
  void additionsInTheNarrowTypeAreWorse() {
    double[] errors = ReductionError.of(DType.BFLOAT16, 32);
    assertThat(errors[1]).isGreaterThan(2 * errors[0]);
  }
}
