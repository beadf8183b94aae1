package dev.weft.tensor.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** What a program sees on a machine that has no GPU. */
class WithoutCudaTest {
  @BeforeEach
  void onlyThere() {
    assumeFalse(Cuda.isAvailable(), "this machine has a GPU");
  }

  @Test
  @DisplayName("P60: a missing driver or library is a reason, not a crash")
  void saysWhy() {
    assertThat(Cuda.unavailableReason()).isNotBlank();
    assertThat(Cuda.deviceCount()).isZero();
    assertThatThrownBy(Cuda::require)
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageContaining("CUDA is not available")
        .hasMessageContaining(Cuda.unavailableReason());
  }

  @Test
  void refusesTensorsThere() {
    assertThatThrownBy(() -> Tensors.empty(DType.FLOAT32, Device.cuda(0), 3))
        .hasMessageContaining("CUDA is not available");
    assertThatThrownBy(() -> Tensor.of(new float[] {1}).to(Device.cuda(0)))
        .hasMessageContaining("CUDA is not available");
  }
}
