package dev.weft.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.LiveBytes;
import dev.weft.tensor.op.Pointwise;
import java.time.Duration;
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

  /** Work that fails with the same exception each time, as that of a group whose peer is gone. */
  private static final class Failing implements Pending {
    private final RuntimeException failure = new IllegalStateException("the peer is gone");

    @Override
    public void await() {
      throw failure;
    }

    @Override
    public void await(Duration timeout) {
      throw failure;
    }

    @Override
    public boolean isCompleted() {
      return true;
    }

    @Override
    public Throwable exception() {
      return failure;
    }
  }

  private static StridedTensor filledBy(Pending work) {
    StridedTensor t = (StridedTensor) Tensor.of(new float[] {1});
    t.storage().setPending(work);
    return t;
  }

  /** Not as {@code IllegalArgumentException: Self-suppression not permitted}. */
  @Test
  void aFailureThatTheBodyWasGivenComesOutAsItIs() {
    Failing work = new Failing();
    assertThatThrownBy(
            () -> {
              try (TensorScope outer = TensorScope.open()) {
                StridedTensor other = filledBy(work);
                try (TensorScope inner = TensorScope.open()) {
                  assertThat(filledBy(work).toFloatArray()).isNotNull();
                }
                assertThat(other).isNotNull();
              }
            })
        .isSameAs(work.failure)
        .hasNoSuppressedExceptions();
  }

  @Test
  void aFailureThatNobodyWasGivenIsThrownByClose() {
    Failing work = new Failing();
    long before = LiveBytes.settled();
    assertThatThrownBy(
            () -> {
              try (TensorScope scope = TensorScope.open()) {
                assertThat(filledBy(work)).isNotNull();
              }
            })
        .isSameAs(work.failure);
    assertThat(HostMemory.liveBytes()).isEqualTo(before);
  }
}
