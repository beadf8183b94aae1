package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.Tensor;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Sparse tensors and their sums. */
@Timeout(60)
class SparseCooTest {
  private static SparseCoo matrix(long[] rows, long[] columns, double... values) {
    long[] both = Arrays.copyOf(rows, 2 * rows.length);
    System.arraycopy(columns, 0, both, rows.length, rows.length);
    return new SparseCoo(
        Tensor.of(both, 2, rows.length), Tensor.of(values, values.length), new long[] {4, 3});
  }

  @Test
  void coordinatesAreSummedOnceAndInOrder() {
    SparseCoo c = matrix(new long[] {3, 0, 3}, new long[] {1, 2, 1}, 1, 5, 10).coalesce();
    assertThat(c.indices().toLongArray()).containsExactly(0, 3, 2, 1);
    assertThat(c.values().toDoubleArray()).containsExactly(5, 11);
  }

  @Test
  void ranksOfDifferentSizesAddUp() {
    LocalWorld.run(
        3,
        rank -> {
          long[] rows = new long[rank];
          long[] columns = new long[rank];
          double[] values = new double[rank];
          for (int i = 0; i < rank; i++) {
            rows[i] = i;
            values[i] = 10 * rank + i;
          }
          SparseCoo sum =
              Distributed.world().allReduceSparse(matrix(rows, columns, values), ReduceOp.SUM);
          assertThat(sum.indices().toLongArray()).containsExactly(0, 1, 0, 0);
          assertThat(sum.values().toDoubleArray()).containsExactly(30, 21);
        });
  }

  @Test
  void whatDoesNotFitIsRefused() {
    assertThatThrownBy(() -> matrix(new long[] {4}, new long[] {0}, 1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("4 in dimension 0; expected 0 to 3");
    assertThatThrownBy(() -> matrix(new long[] {0}, new long[] {0}, 1, 2))
        .hasMessageContaining("expected one for each of the 1 coordinates");
    LocalWorld.run(
        2,
        rank -> {
          SparseCoo m = matrix(new long[] {1}, new long[] {1}, 1);
          assertThatThrownBy(() -> Distributed.world().allReduceSparse(m, ReduceOp.MAX))
              .isInstanceOf(IllegalArgumentException.class);
          SparseCoo wide = new SparseCoo(m.indices(), m.values(), new long[] {4, 3 + rank});
          assertThatThrownBy(() -> Distributed.world().allReduceSparse(wide, ReduceOp.SUM))
              .isInstanceOf(MismatchException.class)
              .hasMessageContaining("[4, 4]");
        });
  }
}
