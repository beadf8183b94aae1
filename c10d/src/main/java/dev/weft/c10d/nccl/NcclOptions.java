package dev.weft.c10d.nccl;

import dev.weft.c10d.BackendOptions;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * How the NCCL backend of a group works. Immutable; {@link #fromEnvironment} has the defaults.
 *
 * @param highPriorityStream whether its stream goes before other work of the device
 * @param blockingWait whether awaiting a work holds up the host until the device is done
 * @param blockingLaunch whether calls of NCCL return only when they have launched, which is the
 *     default. Else NCCL starts a thread for each call on more than one rank, which costs some 80
 *     us; a first use can then be given up while it waits for other ranks, without an abort
 * @param minCtas the fewest thread blocks of a collective, or 0 for NCCL's choice
 * @param maxCtas the most thread blocks of a collective, or 0 for NCCL's choice
 * @param splitShare whether a part of the group shares the resources of its communicator
 */
public record NcclOptions(
    boolean highPriorityStream,
    boolean blockingWait,
    boolean blockingLaunch,
    int minCtas,
    int maxCtas,
    boolean splitShare)
    implements BackendOptions {
  private static final Set<String> TRUE = Set.of("1", "y", "yes", "t", "true");
  private static final Set<String> FALSE = Set.of("0", "n", "no", "f", "false");

  /** Checks the numbers. */
  public NcclOptions {
    if (minCtas < 0 || maxCtas < 0 || (maxCtas > 0 && minCtas > maxCtas)) {
      throw new IllegalArgumentException(
          "minCtas is "
              + minCtas
              + " and maxCtas "
              + maxCtas
              + "; expected 0 (NCCL's choice) or 1 <= minCtas <= maxCtas");
    }
  }

  /** What the process's environment says. */
  public static NcclOptions fromEnvironment() {
    return fromEnvironment(System.getenv());
  }

  /** What {@code WEFT_*} variables say, or PyTorch's of the same meaning. */
  public static NcclOptions fromEnvironment(Map<String, String> environment) {
    return new NcclOptions(
        flag(environment, "NCCL_HIGH_PRIORITY", false),
        flag(environment, "NCCL_BLOCKING_WAIT", false),
        !flag(environment, "NCCL_USE_COMM_NONBLOCKING", false),
        0,
        0,
        false);
  }

  private static boolean flag(Map<String, String> environment, String name, boolean fallback) {
    for (String full : new String[] {"WEFT_" + name, "TORCH_" + name}) {
      String value = environment.get(full);
      if (value != null && !value.isBlank()) {
        String lower = value.trim().toLowerCase(Locale.ROOT);
        if (!TRUE.contains(lower) && !FALSE.contains(lower)) {
          throw new IllegalArgumentException(
              "environment variable " + full + " is '" + value + "'; expected true or false");
        }
        return TRUE.contains(lower);
      }
    }
    return fallback;
  }

  /** The same with or without a high-priority stream. */
  public NcclOptions withHighPriorityStream(boolean high) {
    return new NcclOptions(high, blockingWait, blockingLaunch, minCtas, maxCtas, splitShare);
  }

  /** The same with or without waits of the host. */
  public NcclOptions withBlockingWait(boolean blocking) {
    return new NcclOptions(
        highPriorityStream, blocking, blockingLaunch, minCtas, maxCtas, splitShare);
  }

  /** The same with launches that block or do not. */
  public NcclOptions withBlockingLaunch(boolean blocking) {
    return new NcclOptions(
        highPriorityStream, blockingWait, blocking, minCtas, maxCtas, splitShare);
  }

  /** The same with so many thread blocks at least and at most. */
  public NcclOptions withCtas(int min, int max) {
    return new NcclOptions(highPriorityStream, blockingWait, blockingLaunch, min, max, splitShare);
  }

  /** The same with parts that share resources or do not. */
  public NcclOptions withSplitShare(boolean share) {
    return new NcclOptions(
        highPriorityStream, blockingWait, blockingLaunch, minCtas, maxCtas, share);
  }
}
