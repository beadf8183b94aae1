package dev.weft.dtensor;

import java.util.List;

/**
 * What operators do below the public checks, for conformance tests and tools. Not for user code: no
 * stability is promised.
 */
public final class DTensorInternals {
  private DTensorInternals() {}

  /** Any redistribution that is defined, Partial targets included. */
  public static DTensor redistribute(DTensor tensor, List<? extends Placement> to) {
    return tensor.redistributeTo(DTensorSpec.normalize(tensor.mesh(), to, tensor.ndim()));
  }

  /** Its plan. */
  public static Plan plan(DTensor tensor, List<? extends Placement> to) {
    return Redistribution.plan(
        tensor.spec(), DTensorSpec.normalize(tensor.mesh(), to, tensor.ndim()));
  }

  /** Whether an operator has a sharding rule. */
  public static boolean hasRule(String op) {
    return Rules.has(op);
  }

  /** What it takes to make a tensor whole on every rank, in bytes over the groups. */
  public static long bytesToReplicate(DTensorSpec spec) {
    List<Placement> whole = java.util.Collections.nCopies(spec.mesh().ndim(), Replicate.INSTANCE);
    return Redistribution.plan(spec, whole).bytes();
  }

  /** This rank's part, without history. */
  public static dev.weft.tensor.Tensor local(DTensor tensor) {
    return tensor.local();
  }
}
