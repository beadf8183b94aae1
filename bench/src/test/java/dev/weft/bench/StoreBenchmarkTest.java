package dev.weft.bench;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class StoreBenchmarkTest {
  @Test
  void everyPhaseIsMeasured() {
    Rows rows = new Rows(null);
    new StoreBenchmark(rows, 2, 3).run(List.of(5));
    assertThat(rows.all())
        .extracting(Rows.Row::bench)
        .containsExactly(
            "store_roundtrip",
            "store_gate_only",
            "store_gate_only",
            "store_connect",
            "store_connect",
            "store_set",
            "store_set",
            "store_get_next",
            "store_get_next",
            "store_barrier",
            "store_barrier");
    assertThat(rows.all()).allMatch(r -> r.value() > 0);
    assertThat(rows.all().get(3).params())
        .containsEntry("n", 5)
        .containsEntry("stat", "best")
        .containsEntry("connect_concurrency", 3);
  }
}
