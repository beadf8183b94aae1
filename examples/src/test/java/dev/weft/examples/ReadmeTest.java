package dev.weft.examples;

import org.junit.jupiter.api.Test;

/** The program of the README, whose text the test of the guide compares. */
class ReadmeTest {
  @Test
  void theProgramRuns() {
    HybridTraining.main(new String[] {"threads"});
  }
}
