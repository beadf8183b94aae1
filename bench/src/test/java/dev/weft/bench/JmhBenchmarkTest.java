package dev.weft.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(120)
class JmhBenchmarkTest {
  @ParameterizedTest
  @CsvSource({
    "CollectiveCalls.allReduce$, jmh_all_reduce",
    "redistribute, jmh_redistribute",
    "storeGet, jmh_store_get"
  })
  void aBenchmarkTellsTimeAndBytes(String filter, String name) {
    Rows rows = new Rows(null);
    new JmhBenchmark(rows, 0, 1, 50).run(filter);
    assertThat(rows.all())
        .extracting(Rows.Row::bench)
        .containsExactly(name, name, name + "_allocated");
    assertThat(rows.all()).extracting(Rows.Row::unit).containsExactly("us", "us", "B");
    assertThat(rows.all()).allMatch(r -> r.value() > 0);
    assertThat(rows.all().get(1).params()).containsEntry("stat", "median");
  }

  @Test
  void aFilterThatFindsNothingIsNamed() {
    JmhBenchmark benchmark = new JmhBenchmark(new Rows(null), 0, 1, 50);
    assertThatThrownBy(() -> benchmark.run("nothing"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("'nothing'")
        .hasMessageContaining("CollectiveCalls.barrier");
    assertThat(JmhBenchmark.names()).hasSize(8);
    assertThatThrownBy(() -> new JmhBenchmark(new Rows(null), -1, 1, 50))
        .hasMessageContaining("forks is -1");
  }
}
