package dev.weft.tensor.op;

import java.util.Map;

/**
 * The functions and in-place operators that have no CUDA kernel, each with the reason: none at
 * present. An operator leaves the list with the kernel: {@link CudaCoverageTest} refuses both gaps
 * and stale entries.
 */
final class WithoutCudaKernel {
  private WithoutCudaKernel() {}

  static Map<String, String> reasons() {
    return Map.of();
  }
}
