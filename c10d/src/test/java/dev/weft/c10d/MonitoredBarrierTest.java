package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.debug.FlightRecorderConfig;
import dev.weft.c10d.store.HashStore;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The barrier that names who is missing (P46). */
@Timeout(60)
class MonitoredBarrierTest {
  private static final Duration SHORT = Duration.ofMillis(300);

  @Test
  void itPassesAgainAndAgain() {
    LocalWorld.run(
        3,
        rank -> {
          for (int i = 0; i < 5; i++) {
            Distributed.world().monitoredBarrier(Duration.ofSeconds(20), true);
          }
          Distributed.barrier().await();
          assertThat(RankContext.current().store().listKeys())
              .as("keys left behind")
              .noneMatch(k -> k.contains("monitored"));
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void theMissingAreNamedOnEveryRankThatCame(boolean all) {
    CountDownLatch told = new CountDownLatch(2);
    LocalWorld.run(
        4,
        rank -> {
          if (rank == 1 || rank == 3) {
            told.await();
            return;
          }
          assertThatThrownBy(() -> Distributed.world().monitoredBarrier(SHORT, all))
              .isInstanceOf(OperationTimeoutException.class)
              .hasMessageContaining(all ? "ranks [1, 3] did not arrive" : "rank 1 did not arrive")
              .hasMessageContaining("300 ms");
          told.countDown();
        });
  }

  @Test
  void withoutRankZeroTheArgumentsTimeoutCounts() {
    CountDownLatch told = new CountDownLatch(1);
    LocalWorld.of(2)
        .timeout(Duration.ofMinutes(5))
        .run(
            rank -> {
              if (rank == 0) {
                told.await();
                return;
              }
              assertThatThrownBy(() -> Distributed.world().monitoredBarrier(SHORT, false))
                  .isInstanceOf(OperationTimeoutException.class)
                  .hasMessageContaining("this rank did arrive, and rank 0");
              told.countDown();
            });
  }

  /** A barrier that failed leaves nothing in the store when its first rank has left. */
  @Test
  void afterAFailureTheStoreIsCleanAgain() {
    HashStore store = new HashStore();
    FlightRecorderConfig recorder = FlightRecorderConfig.fromEnvironment(Map.of());
    RankContext first = new RankContext(0, 2, () -> store, SHORT, "fake", null, null, recorder);
    RankContext second = new RankContext(1, 2, () -> store, SHORT, "fake", null, null, recorder);
    assertThatThrownBy(() -> first.world().monitoredBarrier(SHORT, true))
        .hasMessageContaining("rank 1 did not arrive");
    // Who comes late is told at once what has happened.
    assertThatThrownBy(() -> second.world().monitoredBarrier(Duration.ofMinutes(5), true))
        .hasMessageContaining("this rank did arrive, and rank 0 says")
        .hasMessageContaining("rank 1 did not arrive");
    first.close(SHORT);
    second.close(SHORT);
    assertThat(store.listKeys()).isEmpty();
  }
}
