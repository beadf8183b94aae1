package dev.weft.tensor.cuda;

import static dev.weft.tensor.cuda.AgainstCpu.check;
import static dev.weft.tensor.cuda.Samples.indices;
import static dev.weft.tensor.cuda.Samples.normal;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attention;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Indexing;
import dev.weft.tensor.op.Views;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** Rotary positions, SwiGLU and embeddings on the GPU against those of the CPU. */
@CudaTest
class CudaFusedTest {
  @Test
  void ropeOfAnyLayout() {
    for (DType t : Samples.FLOATS) {
      for (int width : new int[] {2, 6, 8, 64, 128}) {
        Tensor[] tables = Attention.ropeTables(7, width, 10_000);
        double tolerance = Samples.tolerance(t);
        for (boolean inverse : new boolean[] {false, true}) {
          Tensor x = normal(1, t, 2, 7, 3, width);
          check("rope", Attrs.of(1, inverse), tolerance, x, tables[0], tables[1]);
          Tensor y = normal(1, t, 2, 3, 7, width);
          check("rope", Attrs.of(2, inverse), tolerance, y, tables[0], tables[1]);
          Tensor turned = Views.transpose(normal(1, t, 3, 7, 2, width), 0, 1);
          check("rope", Attrs.of(0, inverse), tolerance, turned, tables[0], tables[1]);
        }
      }
      Tensor[] tables = Attention.ropeTables(0, 8, 10_000);
      check("rope", Attrs.of(0, false), 0, normal(1, t, 0, 8), tables[0], tables[1]);
    }
  }

  @Test
  void swigluAndItsGradients() {
    for (DType t : Samples.FLOATS) {
      double tolerance = Samples.tolerance(t);
      for (int n : new int[] {0, 1, 7, 1000, 4099}) {
        Tensor a = normal(1, t, n);
        Tensor b = normal(2, t, n);
        check("swiglu", Attrs.NONE, tolerance, a, b);
        check("swiglu_backward", Attrs.NONE, tolerance, normal(3, t, n), a, b);
      }
      Tensor turned = Views.t(normal(1, t, 5, 9));
      check("swiglu", Attrs.NONE, tolerance, turned, normal(2, t, 9, 5));
      check(
          "swiglu_backward", Attrs.NONE, tolerance, normal(2, t, 9, 5), turned, normal(2, t, 9, 5));
    }
  }

  @Test
  void embeddingAndItsGradient() {
    for (DType t : Samples.FLOATS) {
      for (int width : new int[] {1, 5, 64, 1024, 3000}) {
        for (int rows : new int[] {1, 97, 2000}) {
          // The sum of up to 500 numbers, in the CPU's order.
          double tolerance = Samples.tolerance(t) * 4;
          Tensor index = indices(rows, 500).reshape(5, 100);
          check("embedding", Attrs.of(-1L), 0, normal(1, t, rows, width), index);
          check(
              "embedding_backward",
              Attrs.of((long) rows, -1L),
              tolerance,
              normal(2, t, 5, 100, width),
              index);
          check(
              "embedding_backward",
              Attrs.of((long) rows, 0L),
              tolerance,
              normal(2, t, 5, 100, width),
              Casts.to(index, DType.INT32));
        }
      }
      check("embedding", Attrs.of(-1L), 0, Views.t(normal(1, t, 6, 9)), indices(9, 20));
      check("embedding", Attrs.of(-1L), 0, normal(1, t, 6, 9), indices(6, 0));
      check("embedding_backward", Attrs.of(6L, -1L), 0, normal(1, t, 0, 9), indices(6, 0));
    }
  }

  @Test
  void aRowThatOccursOftenIsSummedInTheOrderOfPositions() {
    // 5000 occurrences are more than a block sorts.
    int count = 5000;
    long[] index = new long[count + 7];
    Arrays.fill(index, 0, count, 2);
    Arrays.fill(index, count, count + 7, 1);
    Tensor indices = Tensor.of(index, index.length);
    Tensor g = normal(1, DType.FLOAT32, index.length, 40);
    check("embedding_backward", Attrs.of(4L, -1L), 1e-6, g, indices);
    Tensor x = g.to(AgainstCpu.GPU);
    Tensor at = indices.to(AgainstCpu.GPU);
    var op = dev.weft.tensor.op.Catalogue.get("embedding_backward");
    float[] first = dev.weft.tensor.op.Dispatcher.call(op, Attrs.of(4L, -1L), x, at).toFloatArray();
    for (int i = 0; i < 5; i++) {
      assertThat(dev.weft.tensor.op.Dispatcher.call(op, Attrs.of(4L, -1L), x, at).toFloatArray())
          .isEqualTo(first);
    }
  }

  @Test
  void anIndexOutOfRangeIsReportedAtTheNextSynchronisation() {
    Tensor table = normal(1, DType.FLOAT32, 6, 4).to(AgainstCpu.GPU);
    Tensor wrong = Tensor.of(new long[] {1, -1}, 2).to(AgainstCpu.GPU);
    assertThatThrownBy(() -> Indexing.embedding(table, wrong).toFloatArray())
        .isInstanceOf(IndexOutOfBoundsException.class)
        .hasMessageContaining("embedding: index -1 is out of range; expected [0, 5]");
  }
}
