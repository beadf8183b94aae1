package dev.weft.tensor.op;

import java.util.Map;
import java.util.TreeMap;

/**
 * The functions and in-place operators that have no CUDA kernel, each with the reason. An operator
 * leaves the list with the kernel: {@link CudaCoverageTest} refuses both gaps and stale entries.
 */
final class WithoutCudaKernel {
  private static final String FAMILY = "its family gets its kernels separately";

  private WithoutCudaKernel() {}

  static Map<String, String> reasons() {
    Map<String, String> reasons = new TreeMap<>();
    for (String name :
        new String[] {
          "adamw_",
          "addmm",
          "baddbmm",
          "bmm",
          "contract_leading",
          "cross_entropy",
          "cross_entropy_backward",
          "dot",
          "embedding",
          "embedding_backward",
          "layer_norm",
          "layer_norm_backward",
          "layer_norm_weight_backward",
          "linear",
          "log_softmax",
          "log_softmax_backward",
          "matmul",
          "mm",
          "nll_loss",
          "nll_loss_backward",
          "rms_norm",
          "rms_norm_backward",
          "rms_norm_weight_backward",
          "rope",
          "softmax",
          "softmax_backward"
        }) {
      reasons.put(name, FAMILY);
    }
    return reasons;
  }
}
