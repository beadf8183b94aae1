package dev.weft.conformance;

/**
 * How a case ended.
 *
 * @param kind one of four
 * @param detail what differed, or why it does not apply; empty for passed
 */
public record Outcome(Kind kind, String detail) {
  /** The four ways. */
  public enum Kind {
    /** As recorded. */
    PASSED,
    /** Otherwise, and not on the list of deviations. */
    FAILED,
    /** Otherwise on purpose, and checked to be right. */
    DEVIATION,
    /** Has no meaning here. */
    NOT_APPLICABLE
  }

  static final Outcome PASSED = new Outcome(Kind.PASSED, "");

  static Outcome failed(String detail) {
    return new Outcome(Kind.FAILED, detail);
  }

  static Outcome deviation(String reason) {
    return new Outcome(Kind.DEVIATION, reason);
  }

  static Outcome notApplicable(String reason) {
    return new Outcome(Kind.NOT_APPLICABLE, reason);
  }
}
