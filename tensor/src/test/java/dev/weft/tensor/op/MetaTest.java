package dev.weft.tensor.op;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Operators on device meta give shapes and dtypes, forward and backward, without memory. */
class MetaTest {
  private static Tensor meta(DType dtype, long... shape) {
    return Tensors.empty(dtype, Device.META, shape);
  }

  @Test
  void aLayerOfAModelHasShapesForwardAndBackward() {
    Tensor tokens = meta(DType.INT64, 8, 1024);
    Tensor table = meta(DType.BFLOAT16, 50_000, 4096).requiresGrad(true);
    Tensor scale = meta(DType.BFLOAT16, 4096).requiresGrad(true);
    Tensor weight = meta(DType.BFLOAT16, 11_008, 4096).requiresGrad(true);
    Tensor x = Indexing.embedding(table, tokens);
    Tensor h = Norms.rmsNorm(x, new long[] {4096}, scale, 1e-5);
    Tensor q = h.reshape(8, 1024, 32, 128).permute(0, 2, 1, 3);
    Tensor o = Attention.scaledDotProduct(q, q, q, null).permute(0, 2, 1, 3);
    Tensor y = Activations.silu(MatMul.linear(o.reshape(8, 1024, 4096), weight, null));
    assertThat(y.shape()).containsExactly(8, 1024, 11_008);
    assertThat(y.dtype()).isEqualTo(DType.BFLOAT16);
    y.mean().backward();
    for (Tensor p : List.of(table, scale, weight)) {
      assertThat(p.grad()).isNotNull();
      assertThat(p.grad().shape()).isEqualTo(p.shape());
      assertThat(p.grad().device()).isEqualTo(Device.META);
    }
    assertThatThrownBy(y::item).isInstanceOf(IllegalArgumentException.class);
    assertThat(y.toString()).contains("meta");
  }

  @Test
  void devicesAreNotMixed() {
    assertThatThrownBy(() -> meta(DType.FLOAT32, 2).add(Tensor.of(new float[] {1, 2})))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("add: all tensors must be on one device; got meta, cpu");
  }

  @Test
  void scalarsOfTheHostGoAlong() {
    Tensor sum = meta(DType.FLOAT32, 2).add(Tensor.of(new double[] {1}));
    assertThat(sum.device()).isEqualTo(Device.META);
    assertThat(sum.shape()).containsExactly(2);
  }
}
