package dev.weft.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.LiveBytes;
import dev.weft.tensor.op.Pointwise;
import org.junit.jupiter.api.Test;

class TensorScopeTest {
  @Test
  void whatIsMadeInAScopeEndsWithIt() {
    long before = LiveBytes.settled();
    Tensor inside;
    try (TensorScope scope = TensorScope.open()) {
      inside = Tensor.of(new float[] {1, 2, 3});
      assertThat(HostMemory.liveBytes()).isEqualTo(before + 12);
      assertThat(scope.size()).isEqualTo(1);
    }
    assertThat(HostMemory.liveBytes()).isEqualTo(before);
    Tensor dead = inside;
    assertThatThrownBy(dead::toFloatArray)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("TensorScope.keep");
  }

  @Test
  void aKeptTensorMovesToTheEnclosingScope() {
    long before = LiveBytes.settled();
    try (TensorScope outer = TensorScope.open()) {
      Tensor kept;
      try (TensorScope inner = TensorScope.open()) {
        kept = inner.keep(Tensor.of(new float[] {1, 2, 3}));
        assertThat(Tensor.of(new float[] {4}).item()).isEqualTo(4);
      }
      assertThat(kept.toFloatArray()).containsExactly(1, 2, 3);
      assertThat(outer.size()).isEqualTo(1);
    }
    assertThat(HostMemory.liveBytes()).isEqualTo(before);
  }

  @Test
  void savedTensorsOutliveAnInnerScopeUntilBackwardHasUsedThem() {
    long before = LiveBytes.settled();
    try (TensorScope outer = TensorScope.open()) {
      Tensor x = Tensor.of(new float[] {1, 2, 3}).requiresGrad(true);
      Tensor y;
      try (TensorScope inner = TensorScope.open()) {
        y = inner.keep(Pointwise.add(Pointwise.add(x, x), x));
      }
      y.backward(Tensor.of(new float[] {1, 10, 100}));
      assertThat(x.grad()).isNotNull();
      assertThat(x.grad().toFloatArray()).containsExactly(3, 30, 300);
    }
    assertThat(HostMemory.liveBytes()).isEqualTo(before);
  }
}
