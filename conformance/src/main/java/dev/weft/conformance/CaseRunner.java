package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;

/** Runs the cases of one file. Called by one thread; a failed check is a {@link Mismatch}. */
interface CaseRunner {
  /** Runs a case; anything thrown counts as failed. */
  Outcome run(JsonNode caseNode) throws Exception;

  /** What a check found different. */
  final class Mismatch extends RuntimeException {
    private static final long serialVersionUID = 1;

    Mismatch(String message) {
      super(message);
    }
  }
}
