package dev.weft.c10d.debug;

import java.nio.file.Path;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What a flight recorder keeps, and where it goes when something fails. Immutable.
 *
 * @param bufferSize how many calls are kept; 0 turns the recorder off
 * @param stacks whether calls keep the stack they were made from
 * @param onlyActive whether dumps leave completed calls out
 * @param dumpOnFailure whether the first failure of a rank writes a dump
 * @param prefix the file name of a dump but for the rank's digits, or null for the default
 */
public record FlightRecorderConfig(
    int bufferSize,
    boolean stacks,
    boolean onlyActive,
    boolean dumpOnFailure,
    @Nullable String prefix) {
  /** Reads {@code WEFT_FR_*} and PyTorch's variables of the same meaning; the former win. */
  public static FlightRecorderConfig fromEnvironment(Map<String, String> environment) {
    Variables v = new Variables(environment);
    long size =
        v.number(
            2_000, "WEFT_FR_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE");
    return new FlightRecorderConfig(
        Math.toIntExact(size),
        v.flag(true, "WEFT_INCLUDE_STACK_TRACE", "TORCH_INCLUDE_STACK_TRACE"),
        v.flag(false, "WEFT_INCLUDE_ONLY_ACTIVE", "TORCH_INCLUDE_ONLY_ACTIVE"),
        v.flag(true, "WEFT_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT"),
        v.text(
            "WEFT_FR_DUMP_TEMP_FILE",
            "TORCH_FR_DUMP_TEMP_FILE",
            "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"));
  }

  /** The file of a rank's dump: the prefix and the rank's digits, as PyTorch's tools want it. */
  public Path dumpFile(int rank) {
    String start = prefix;
    if (start == null) {
      start =
          Path.of(System.getProperty("user.home", "."), ".cache", "weft", "comm_lib_trace_rank_")
              .toString();
    }
    return Path.of(start + rank);
  }
}
