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
 * @param prefetch whether the next module's parameters are gathered while one computes; true at
 *     first
 */
public record FullyShardedPolicy(
    boolean reshardAfterForward,
    @Nullable DType paramDtype,
    @Nullable DType reduceDtype,
    @Nullable DType outputDtype,
    boolean castForwardInputs,
    boolean prefetch) {
  /** Reshard after forward, own dtypes, prefetch. */
  public static final FullyShardedPolicy DEFAULT =
      new FullyShardedPolicy(true, null, null, null, true, true);

  /** Checks the dtypes. */
  public FullyShardedPolicy {
    check("paramDtype", paramDtype);
    check("reduceDtype", reduceDtype);
    check("outputDtype", outputDtype);
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
        reshard, paramDtype, reduceDtype, outputDtype, castForwardInputs, prefetch);
  }

  /**
   * With mixed precision.
   *
   * @param param to compute in
   * @param reduce to reduce gradients in
   */
  public FullyShardedPolicy withMixedPrecision(DType param, DType reduce) {
    return new FullyShardedPolicy(
        reshardAfterForward, param, reduce, outputDtype, castForwardInputs, prefetch);
  }

  /** With an output of this dtype. */
  public FullyShardedPolicy withOutputDtype(DType dtype) {
    return new FullyShardedPolicy(
        reshardAfterForward, paramDtype, reduceDtype, dtype, castForwardInputs, prefetch);
  }

  /** With or without the cast of inputs. */
  public FullyShardedPolicy withCastForwardInputs(boolean cast) {
    return new FullyShardedPolicy(
        reshardAfterForward, paramDtype, reduceDtype, outputDtype, cast, prefetch);
  }

  /** With or without prefetch. */
  public FullyShardedPolicy withPrefetch(boolean on) {
    return new FullyShardedPolicy(
        reshardAfterForward, paramDtype, reduceDtype, outputDtype, castForwardInputs, on);
  }
}
