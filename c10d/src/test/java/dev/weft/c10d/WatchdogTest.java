package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.weft.c10d.debug.FlightRecorder;
import dev.weft.c10d.debug.FlightRecorderConfig;
import dev.weft.c10d.debug.GroupLog;
import dev.weft.c10d.debug.RecordedCall;
import dev.weft.c10d.debug.Watchdog;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Outstanding calls are looked after, and a timeout says where every rank is. */
@Timeout(60)
class WatchdogTest {
  private static final Watchdog.Config QUICK =
      new Watchdog.Config(Duration.ofMillis(5), Duration.ofMillis(20), Duration.ofMillis(100));

  private static FlightRecorder recorder() {
    return new FlightRecorder(0, FlightRecorderConfig.fromEnvironment(Map.of()));
  }

  private static RecordedCall call(FlightRecorder recorder, long timeoutMillis) {
    GroupLog log = recorder.group("world", "", List.of(0, 1), 0, "gloo");
    return log.collective("all_reduce", List.of(), List.of(), timeoutMillis);
  }

  @Test
  void anOverdueCallIsReportedOnce() throws InterruptedException {
    FlightRecorder recorder = recorder();
    List<RecordedCall> heard = Collections.synchronizedList(new ArrayList<>());
    CountDownLatch rounds = new CountDownLatch(20);
    RecordedCall slow = call(recorder, 10);
    RecordedCall done = call(recorder, 10);
    done.complete();
    RecordedCall young = call(recorder, 60_000);
    CountDownLatch first = new CountDownLatch(1);
    try (Watchdog watchdog =
        new Watchdog(
            0,
            recorder,
            QUICK,
            () -> {
              if (first.getCount() == 0) {
                rounds.countDown();
              }
            },
            c -> {
              heard.add(c);
              first.countDown();
            })) {
      watchdog.start();
      assertThat(rounds.await(20, TimeUnit.SECONDS)).isTrue();
    }
    assertThat(heard).containsExactly(slow);
    assertThat(young.isActive()).isTrue();
  }

  /** P42: what counts are calls, not what the rank does between them. */
  @Test
  void aRankThatMakesNoCallsIsLeftAlone() throws InterruptedException {
    FlightRecorder recorder = recorder();
    CountDownLatch rounds = new CountDownLatch(100); // several times the heartbeat's limit
    try (Watchdog watchdog =
        new Watchdog(
            0,
            recorder,
            QUICK,
            rounds::countDown,
            c -> {
              throw new AssertionError("nothing was called");
            })) {
      watchdog.start();
      assertThat(rounds.await(20, TimeUnit.SECONDS)).isTrue();
    }
    assertThat(recorder.snapshot().get("weft_events")).isEqualTo(List.of());
  }

  @Test
  void aSilentWatchdogIsNoticed() throws InterruptedException {
    FlightRecorder recorder = recorder();
    CountDownLatch stuck = new CountDownLatch(1);
    try (Watchdog watchdog =
        new Watchdog(
            0,
            recorder,
            QUICK,
            () -> {
              try {
                stuck.await();
              } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
              }
            },
            c -> {})) {
      watchdog.start();
      long until = System.nanoTime() + 20_000_000_000L;
      while (!recorder.snapshot().get("weft_events").toString().contains("heartbeat")
          && System.nanoTime() < until) {
        Thread.onSpinWait();
      }
      stuck.countDown();
    }
    assertThat(recorder.snapshot().get("weft_events").toString())
        .contains("the watchdog of rank 0 has been silent")
        .contains("this is no timeout of an operation");
  }

  /** Rank 2 is busy elsewhere; rank 1 waits for it in another group, and is not blamed. */
  @Test
  void aTimeoutTellsWhereEveryRankIs() throws InterruptedException {
    CountDownLatch told = new CountDownLatch(2);
    LocalWorld.of(3)
        .overTcp()
        .timeout(Duration.ofSeconds(4))
        .run(
            rank -> {
              ProcessGroup pair = Distributed.newGroup(1, 2);
              Distributed.barrier().await();
              if (rank == 0) {
                Throwable e = catchThrowable(Distributed::barrier);
                assertThat(e).isInstanceOf(OperationTimeoutException.class);
                assertThat(e.getSuppressed()).hasSize(1);
                assertThat(e.getSuppressed()[0])
                    .hasMessageContaining("desync report of group 'world'")
                    .hasMessageContaining("rank 1 is in barrier (seq 1) of group 'group[1,2]#1'")
                    .hasMessageContaining("rank 2 is in no call, and ended barrier (collective 1)")
                    .hasMessageContaining("the others wait for rank 2");
                told.countDown();
              } else if (rank == 1) {
                CollectiveOptions patient =
                    CollectiveOptions.SYNC.withTimeout(Duration.ofSeconds(6));
                assertThatThrownBy(() -> pair.barrier(patient))
                    .hasMessageContaining("rank 2 did not arrive");
                told.countDown();
              } else {
                told.await();
              }
            });
  }
}
