package dev.weft.c10d;

import org.junit.jupiter.api.Nested;

/** Calls that do not fit, on the host backend. */
class MismatchTest {
  @Nested
  class InOneMemory extends MismatchSpec {
    InOneMemory() {
      super(OnRanks.by(Way.THREADS));
    }
  }

  @Nested
  class OverTcp extends MismatchSpec {
    OverTcp() {
      super(OnRanks.by(Way.TCP));
    }
  }

  @Nested
  class OverSharedMemory extends MismatchSpec {
    OverSharedMemory() {
      super(OnRanks.by(Way.SHM));
    }
  }
}
