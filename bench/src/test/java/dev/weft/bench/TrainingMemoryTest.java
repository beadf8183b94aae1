package dev.weft.bench;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TrainingMemoryTest {
  /** The formula is an upper bound but for the scalars of a step, and not a loose one. */
  @ParameterizedTest
  @CsvSource({
    "DDP,2",
    "SHARDED,1",
    "SHARDED,2",
    "SHARDED,4",
    "SHARDED_NO_PREFETCH,2",
    "SHARDED_BFLOAT16,2",
    "REPLICATED_SHARDS,4"
  })
  void thePeakIsThatOfTheFormula(TrainingMemory.Layout layout, int ranks) {
    double measured = new TrainingMemory(new Rows(null)).measure(layout, ranks);
    assertThat(measured / TrainingMemory.formula(layout, ranks)).isBetween(0.9, 1.05);
  }
}
