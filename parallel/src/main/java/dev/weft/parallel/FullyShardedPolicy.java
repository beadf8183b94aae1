package dev.weft.parallel;

import dev.weft.tensor.DType;
import org.jspecify.annotations.Nullable;

/**
 * How {@link FullySharded} treats one module; the same on all ranks.
 *
 * @param reshardAfterForward whether whole parameters are let go between forward and backward, and
 *     gathered again; true at first. False costs memory and saves a gather, which suits the
 *     outermost module
 * @param paramDtype what parameters are gathered in and forward and backward compute in; null for
 *     their own
 * @param reduceDtype what gradients are reduced in; null for {@code paramDtype}
 * @param outputDtype what the module's output is cast to; null for what comes out
 * @param castForwardInputs whether floating-point inputs are cast to {@code paramDtype}; true at
 *     first
 * @param prefetch of how many modules the parameters are gathered ahead while one computes; 1 at
 *     first
 * @param cpuOffload whether this rank's parts of parameters and gradients, and with them the
 *     optimiser's state and step, lie in the host's memory; false at first. On a mesh of GPUs a
 *     group whose backend is {@code cpu:host,cuda:nccl} is needed to clip gradients then
 */
public record FullyShardedPolicy(
    boolean reshardAfterForward,
    @Nullable DType paramDtype,
    @Nullable DType reduceDtype,
    @Nullable DType outputDtype,
    boolean castForwardInputs,
    int prefetch,
    boolean cpuOffload) {
  /** Reshard after forward, own dtypes, prefetch. */
  public static final FullyShardedPolicy DEFAULT =
      new FullyShardedPolicy(true, null, null, null, true, 1, false);

  /** Checks the dtypes. */
  public FullyShardedPolicy {
    check("paramDtype", paramDtype);
    check("reduceDtype", reduceDtype);
    check("outputDtype", outputDtype);
    if (prefetch < 0) {
      throw new IllegalArgumentException("prefetch is " + prefetch + "; expected 0 or more");
    }
  }

  private static void check(String what, @Nullable DType dtype) {
    if (dtype != null && !dtype.isFloatingPoint()) {
      throw new IllegalArgumentException(
          what + " is " + dtype + "; expected a floating-point dtype");
    }
  }

  /** With or without resharding after forward. */
  public FullyShardedPolicy withReshardAfterForward(boolean reshard) {
    return new FullyShardedPolicy(
        reshard, paramDtype, reduceDtype, outputDtype, castForwardInputs, prefetch, cpuOffload);
  }

  /**
   * With mixed precision.
   *
   * @param param to compute in
   * @param reduce to reduce gradients in
   */
  public FullyShardedPolicy withMixedPrecision(DType param, DType reduce) {
    return new FullyShardedPolicy(
        reshardAfterForward, param, reduce, outputDtype, castForwardInputs, prefetch, cpuOffload);
  }

  /** With an output of this dtype. */
  public FullyShardedPolicy withOutputDtype(DType dtype) {
    return new FullyShardedPolicy(
        reshardAfterForward,
        paramDtype,
        reduceDtype,
        dtype,
        castForwardInputs,
        prefetch,
        cpuOffload);
  }

  /** With or without the cast of inputs. */
  public FullyShardedPolicy withCastForwardInputs(boolean cast) {
    return new FullyShardedPolicy(
        reshardAfterForward, paramDtype, reduceDtype, outputDtype, cast, prefetch, cpuOffload);
  }

  /** With prefetch of the next module, or without. */
  public FullyShardedPolicy withPrefetch(boolean on) {
    return withPrefetch(on ? 1 : 0);
  }

  /** With prefetch of the next so many modules. Each costs the memory of its whole parameters. */
  public FullyShardedPolicy withPrefetch(int modules) {
    return new FullyShardedPolicy(
        reshardAfterForward,
        paramDtype,
        reduceDtype,
        outputDtype,
        castForwardInputs,
        modules,
        cpuOffload);
  }

  /** With the parts in the host's memory, or where the modules compute. */
  public FullyShardedPolicy withCpuOffload(boolean offload) {
    return new FullyShardedPolicy(
        reshardAfterForward,
        paramDtype,
        reduceDtype,
        outputDtype,
        castForwardInputs,
        prefetch,
        offload);
  }
}
