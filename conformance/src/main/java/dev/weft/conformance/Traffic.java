package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.tensor.DType;
import org.jspecify.annotations.Nullable;

/**
 * The grading of what was moved, and of how far results then are from whole. One case, one thread.
 */
final class Traffic {
  private String placements = "";
  private long further;
  private long nearer;

  /** Notes that a result lies otherwise than recorded, and what making it whole takes. */
  void differs(String what, long ours, long theirs) {
    if (ours > theirs) {
      placements = what + " (" + ours + " B from whole, recorded " + theirs + ")";
      further = Math.max(further, ours - theirs);
    } else {
      nearer = Math.max(nearer, theirs - ours);
    }
  }

  /**
   * Compares with what is recorded.
   *
   * @param extra collectives of one element each that are allowed on top, or null
   * @return why this counts as a deviation, or null where it is no worse in any respect
   * @throws CaseRunner.Mismatch where it is worse
   */
  @Nullable String grade(String at, JsonNode comm, CommLog log, Deviations.@Nullable Extra extra) {
    return grade(at, CommBytes.of(comm, DType.FLOAT32), log, extra);
  }

  /** The same with what several records add up to. */
  @Nullable String grade(
      String at, CommBytes recorded, CommLog log, Deviations.@Nullable Extra extra) {
    int count = log.count();
    long bytes = log.bytes(DType.FLOAT32);
    boolean unbounded = recorded.bytes() == Long.MAX_VALUE;
    if (count <= recorded.count() && bytes <= recorded.bytes() && further == 0) {
      return null;
    }
    if (count < recorded.count()
        && (unbounded
            || bytes <= recorded.bytes()
            || bytes + further <= recorded.bytes() + nearer)) {
      return "fewer collectives than recorded, other placements";
    }
    if (count == recorded.count() && (unbounded || bytes + further <= recorded.bytes() + nearer)) {
      return "no more bytes than recorded once results are whole, other placements";
    }
    if (extra != null
        && count <= recorded.count() + extra.collectives()
        && bytes <= recorded.bytes() + 8L * extra.collectives()) {
      return extra.reason();
    }
    throw new CaseRunner.Mismatch(
        at
            + "traffic: got "
            + bytes
            + " B of "
            + log
            + ", want no more than "
            + recorded
            + "; "
            + placements);
  }
}
