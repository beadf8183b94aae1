package dev.weft.c10d.conformance;

/**
 * How a case ended.
 *
 * @param verdict one of the four
 * @param detail what differed, or why it deviates or does not apply
 */
record Outcome(Verdict verdict, String detail) {
  enum Verdict {
    PASSED,
    FAILED,
    DEVIATION,
    NOT_APPLICABLE
  }

  static Outcome passed() {
    return new Outcome(Verdict.PASSED, "");
  }

  static Outcome failed(String detail) {
    return new Outcome(Verdict.FAILED, detail);
  }

  static Outcome deviation(String reason) {
    return new Outcome(Verdict.DEVIATION, reason);
  }

  static Outcome notApplicable(String reason) {
    return new Outcome(Verdict.NOT_APPLICABLE, reason);
  }
}
