package dev.weft.c10d.nccl;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Whether NCCL can be used here, and what it holds. Thread-safe. */
public final class Nccl {
  private Nccl() {}

  /**
   * A communicator that lives.
   *
   * @param group the name of its group
   * @param key the device, such as {@code 0}, or the pair of group ranks, such as {@code 1:3}
   * @param device the ordinal of its device
   * @param rank this rank in it
   * @param size how many ranks it has
   * @param highPriority whether its stream goes before others
   * @param memoryBytes by how much the device's free memory shrank while it was made
   */
  public record Communicator(
      String group,
      String key,
      int device,
      int rank,
      int size,
      boolean highPriority,
      long memoryBytes) {}

  /** True when the NCCL backend can be used here. */
  public static boolean isAvailable() {
    return unavailableReason() == null;
  }

  /** Why it cannot, with what to do about it; null when it can. */
  public static @Nullable String unavailableReason() {
    return NcclLibrary.unavailableReason();
  }

  /** The library's version, such as 2.28.9; empty when there is none. */
  public static String version() {
    int version = NcclLibrary.version();
    return version == 0 ? "" : NcclLibrary.text(version);
  }

  /** How many communicators this process has made. */
  public static long communicatorsCreated() {
    return NcclCommunicator.created();
  }

  /** The communicators that live now. */
  public static List<Communicator> communicators() {
    return NcclMonitor.communicators().stream().map(NcclCommunicator::describe).toList();
  }
}
