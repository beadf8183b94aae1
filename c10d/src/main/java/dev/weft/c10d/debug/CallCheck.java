package dev.weft.c10d.debug;

import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** Whether two ranks' entries of one collective fit together. Stateless. */
final class CallCheck {
  private static final Set<String> LIBRARIES =
      Set.of("nccl", "ncclx", "xccl", "gloo", "rccl", "rcclx", "mccl", "hccl");
  private static final Set<String> OPERATIONS =
      Set.of(
          "broadcast",
          "_broadcast_oop",
          "reduce",
          "_reduce_oop",
          "all_gather",
          "all_gather_single",
          "all_gather_v",
          "_all_gather_base",
          "all_gather_into_tensor_coalesced",
          "all_reduce",
          "allreduce_coalesced",
          "all_reduce_barrier",
          "barrier",
          "reduce_scatter",
          "reduce_scatter_single",
          "reduce_scatter_v",
          "_reduce_scatter_base",
          "reduce_scatter_tensor_coalesced",
          "gather",
          "scatter",
          "all_to_all",
          "all_to_all_single",
          "all_to_all_v_single",
          "split",
          "new_window",
          "ALLGATHER_coalesced",
          "REDUCE_SCATTER_coalesced",
          "send",
          "recv",
          "coalesced");
  private static final Set<String> GATHERS = Set.of("all_gather", "_all_gather_base");
  private static final Set<String> SCATTERS = Set.of("reduce_scatter", "_reduce_scatter_base");

  private CallCheck() {}

  /** What is wrong between two ranks. */
  enum Mismatch {
    COLLECTIVE_TYPE_MISMATCH("the operations differ"),
    SIZE_OR_SYNTAX_MISMATCH("the sizes do not fit"),
    COLLECTIVE_STATE_MISMATCH("it has ended on one and not on the other"),
    COLLECTIVE_DTYPE_MISMATCH("the element types differ");

    private final String words;

    Mismatch(String words) {
      this.words = words;
    }

    String words() {
      return words;
    }
  }

  /** Refuses entries that no known library writes. */
  static void known(DumpEntry e) {
    if (!LIBRARIES.contains(e.library) || !OPERATIONS.contains(e.operation)) {
      throw new IllegalArgumentException(
          "the dump of rank "
              + e.rank
              + " has a call '"
              + e.profilingName()
              + "'; expected LIBRARY:OPERATION of "
              + new TreeSet<>(LIBRARIES)
              + " and "
              + new TreeSet<>(OPERATIONS));
    }
  }

  /** What is wrong with the second, when the first is right; null when they fit. */
  static @Nullable Mismatch between(DumpEntry first, DumpEntry second) {
    if (!first.operation.equals(second.operation)) {
      return Mismatch.COLLECTIVE_TYPE_MISMATCH;
    }
    if (sizesDiffer(first, second) || !fits(second)) {
      return Mismatch.SIZE_OR_SYNTAX_MISMATCH;
    }
    Set<String> dtypes = first.dtypes();
    dtypes.addAll(second.dtypes());
    if (dtypes.size() > 1) {
      return Mismatch.COLLECTIVE_DTYPE_MISMATCH;
    }
    return first.isCompleted() == second.isCompleted() ? null : Mismatch.COLLECTIVE_STATE_MISMATCH;
  }

  private static boolean sizesDiffer(DumpEntry a, DumpEntry b) {
    boolean inputs = !a.inputs().equals(b.inputs());
    boolean outputs = !a.outputs().equals(b.outputs());
    return switch (a.operation) {
      case "all_to_all" -> false;
      case "scatter" -> outputs;
      case "gather" -> inputs;
      // One size for each rank: they may be uneven, but all ranks must know them.
      case "all_gather" -> isList(a.outputs(), a) ? outputs : inputs || outputs;
      case "reduce_scatter" -> isList(a.inputs(), a) ? inputs : inputs || outputs;
      default -> inputs || outputs;
    };
  }

  private static boolean isList(List<List<Long>> sizes, DumpEntry e) {
    return sizes.size() > 1 && sizes.size() == e.group.ranks().size();
  }

  /** Whether the two sides of one rank's call belong together. */
  private static boolean fits(DumpEntry e) {
    long in = DumpEntry.numel(e.inputs());
    long out = DumpEntry.numel(e.outputs());
    int size = e.group.ranks().size();
    int own = e.group.ranks().indexOf(e.rank);
    if (e.operation.equals("all_reduce")) {
      return e.inputs().equals(e.outputs());
    }
    if (GATHERS.contains(e.operation)) {
      return isList(e.outputs(), e)
          ? in == DumpEntry.numel(List.of(e.outputs().get(own)))
          : in * size == out;
    }
    if (SCATTERS.contains(e.operation)) {
      return isList(e.inputs(), e)
          ? out == DumpEntry.numel(List.of(e.inputs().get(own)))
          : out * size == in;
    }
    return true;
  }
}
