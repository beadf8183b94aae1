package dev.weft.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.LocalWorld;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class AlgorithmBenchmarkTest {
  @Test
  void everyAlgorithmHasItsRow() {
    Rows rows = new Rows(null);
    LocalWorld.of(3)
        .overTcp()
        .run(
            rank ->
                new AlgorithmBenchmark("all_reduce", List.of("flat", "direct", "ring"))
                    .run(3000, 0.2, rank == 0 ? rows : null));
    assertThat(rows.all())
        .extracting(r -> r.params().get("algorithm"))
        .containsExactly("flat", "direct", "ring");
    assertThat(rows.all()).allMatch(r -> r.value() > 0 && r.params().get("bytes").equals(3000L));
  }

  @Test
  void whatThereIsNotIsAnError() {
    assertThatThrownBy(
            () -> LocalWorld.of(2).run(rank -> new AlgorithmBenchmark("barrier", List.of("flat"))))
        .hasStackTraceContaining("barrier=flat; expected some of");
  }
}
