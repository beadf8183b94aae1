package dev.weft.bench;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class SlowLinkTrainingTest {
  /** From 5.8 nats at the start, 20 steps of any way get below 4 on a link that is not slow. */
  @ParameterizedTest
  @EnumSource
  void everyWayTrains(SlowLinkTraining.Way way) {
    Rows rows = new Rows(null);
    SlowLinkTraining.Result result =
        new SlowLinkTraining(rows, Duration.ZERO, 1e12, 4, 20).measure(way);
    assertThat(result.steps()).isEqualTo(20);
    assertThat(result.loss()).isLessThan(4);
    assertThat(rows.all())
        .extracting(Rows.Row::bench)
        .containsExactly("loss", "tokens_to_loss", "time_to_loss");
  }
}
