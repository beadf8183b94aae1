package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.weft.c10d.debug.FlightRecorder;
import dev.weft.c10d.debug.FlightRecorderConfig;
import dev.weft.c10d.debug.GroupLog;
import dev.weft.c10d.debug.RecordedCall;
import dev.weft.c10d.debug.Watchdog;
import dev.weft.c10d.store.HashStore;
import dev.weft.tensor.Tensor;
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
      new Watchdog.Config(
          Duration.ofMillis(5), Duration.ofMillis(20), Duration.ofMillis(100), true);

  private static FlightRecorder recorder() {
    return new FlightRecorder(0, FlightRecorderConfig.fromEnvironment(Map.of()));
  }

  /** What a watchdog has told. */
  private static class Heard implements Watchdog.Listener {
    final List<RecordedCall> overdue = Collections.synchronizedList(new ArrayList<>());
    final List<String> silent = Collections.synchronizedList(new ArrayList<>());
    final CountDownLatch closed = new CountDownLatch(1);

    @Override
    public void round() {}

    @Override
    public void overdue(RecordedCall call) {
      overdue.add(call);
    }

    @Override
    public void silent(String text) {
      silent.add(text);
    }

    @Override
    public void closed() {
      closed.countDown();
    }
  }

  private static RecordedCall call(FlightRecorder recorder, long timeoutMillis) {
    GroupLog log = recorder.group("world", "", List.of(0, 1), 0, "gloo");
    return log.collective("all_reduce", List.of(), List.of(), timeoutMillis);
  }

  @Test
  void anOverdueCallIsReportedOnce() throws InterruptedException {
    FlightRecorder recorder = recorder();
    CountDownLatch rounds = new CountDownLatch(20);
    RecordedCall slow = call(recorder, 10);
    RecordedCall done = call(recorder, 10);
    done.complete();
    RecordedCall young = call(recorder, 60_000);
    Heard heard =
        new Heard() {
          @Override
          public void round() {
            if (!overdue.isEmpty()) {
              rounds.countDown();
            }
          }
        };
    try (Watchdog watchdog = new Watchdog(0, recorder, QUICK, heard)) {
      watchdog.start();
      assertThat(rounds.await(20, TimeUnit.SECONDS)).isTrue();
    }
    assertThat(heard.overdue).containsExactly(slow);
    assertThat(young.isActive()).isTrue();
    assertThat(heard.closed.getCount()).isZero();
  }

  /** P42: what counts are calls, not what the rank does between them. */
  @Test
  void aRankThatMakesNoCallsIsLeftAlone() throws InterruptedException {
    FlightRecorder recorder = recorder();
    CountDownLatch rounds = new CountDownLatch(100); // several times the heartbeat's limit
    Heard heard =
        new Heard() {
          @Override
          public void round() {
            rounds.countDown();
          }
        };
    try (Watchdog watchdog = new Watchdog(0, recorder, QUICK, heard)) {
      watchdog.start();
      assertThat(rounds.await(20, TimeUnit.SECONDS)).isTrue();
    }
    assertThat(heard.overdue).isEmpty();
    assertThat(recorder.snapshot().get("weft_events")).isEqualTo(List.of());
  }

  /** P42: what is known to take long is left alone; its time starts anew after the pause. */
  @Test
  void aPauseKeepsOverdueCallsFromBeingReported() throws InterruptedException {
    FlightRecorder recorder = recorder();
    CountDownLatch paused = new CountDownLatch(50);
    CountDownLatch reported = new CountDownLatch(1);
    Heard heard =
        new Heard() {
          @Override
          public void round() {
            paused.countDown();
          }

          @Override
          public void overdue(RecordedCall call) {
            super.overdue(call);
            reported.countDown();
          }
        };
    try (Watchdog watchdog = new Watchdog(0, recorder, QUICK, heard)) {
      RecordedCall slow;
      try (Watchdog.Pause outer = watchdog.pause();
          Watchdog.Pause inner = watchdog.pause()) {
        inner.close();
        inner.close(); // counts once
        watchdog.start();
        slow = call(recorder, 1);
        assertThat(paused.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(heard.overdue).isEmpty();
      }
      assertThat(reported.await(20, TimeUnit.SECONDS)).isTrue();
      assertThat(heard.overdue).containsExactly(slow);
    }
  }

  @Test
  void aSilentWatchdogIsNoticed() throws InterruptedException {
    FlightRecorder recorder = recorder();
    CountDownLatch stuck = new CountDownLatch(1);
    CountDownLatch noticed = new CountDownLatch(1);
    Heard heard =
        new Heard() {
          @Override
          public void round() {
            try {
              stuck.await();
            } catch (InterruptedException e) {
              Thread.currentThread().interrupt();
            }
          }

          @Override
          public void silent(String text) {
            super.silent(text);
            noticed.countDown();
          }
        };
    try (Watchdog watchdog = new Watchdog(0, recorder, QUICK, heard)) {
      watchdog.start();
      assertThat(noticed.await(20, TimeUnit.SECONDS)).isTrue();
      stuck.countDown();
    }
    assertThat(heard.silent).hasSize(1);
    assertThat(heard.silent.get(0))
        .contains("the watchdog of rank 0 has been silent")
        .contains("this is no timeout of an operation");
    assertThat(recorder.snapshot().get("weft_events").toString()).contains(heard.silent.get(0));
  }

  @Test
  void theMonitorCanBeTurnedOff() {
    assertThat(Watchdog.Config.fromEnvironment(Map.of("TORCH_NCCL_ENABLE_MONITORING", "0")))
        .isEqualTo(
            new Watchdog.Config(
                Duration.ofSeconds(1), Duration.ofSeconds(2), Duration.ofSeconds(480), false));
  }

  /** Nobody awaits it, so nobody would find out: the world ends with its name. */
  @Test
  void anOverdueCallEndsAWorldOfThreads() {
    Throwable first =
        catchThrowable(
            () ->
                LocalWorld.run(
                    2,
                    rank -> {
                      if (rank == 0) {
                        CollectiveOptions brief =
                            CollectiveOptions.ASYNC.withTimeout(Duration.ofMillis(200));
                        // A receive that nobody awaits ends by nothing but the watchdog.
                        Work unused =
                            Distributed.world().recv(Tensor.of(new float[1]), 1, 0, brief);
                        Work never = Distributed.world().recv(Tensor.of(new float[1]), 1, 1);
                      } else {
                        Work never = Distributed.world().recv(Tensor.of(new float[1]), 0, 2);
                      }
                    }));
    assertThat(first)
        .hasMessageContaining("watchdog of rank 0: recv 0<-1 (seq 1) in group 'world'")
        .hasMessageContaining("its timeout is 200 ms, and nobody awaits it");
  }

  /** Ranks that are threads tell where they are, too; also without a watchdog. */
  @Test
  void aTimeoutInAWorldOfThreadsTellsWhereEveryRankIs() {
    CountDownLatch told = new CountDownLatch(1);
    LocalWorld.of(3)
        .timeout(Duration.ofSeconds(2))
        .run(
            rank -> {
              ProcessGroup pair = Distributed.newGroup(1, 2);
              Distributed.barrier().await();
              if (rank == 0) {
                Throwable e = catchThrowable(Distributed::barrier);
                told.countDown();
                assertThat(e).isInstanceOf(OperationTimeoutException.class);
                assertThat(e.getSuppressed()).hasSize(1);
                assertThat(e.getSuppressed()[0])
                    .hasMessageContaining(
                        "rank 0 has given up barrier (seq 2) of group 'world'"
                            + " (OperationTimeoutException) (told ")
                    .hasMessageContaining("rank 1 is in barrier (seq 1) of group 'group[1,2]#1'")
                    .hasMessageContaining("the others wait for rank 2");
              } else if (rank == 1) {
                CollectiveOptions patient =
                    CollectiveOptions.SYNC.withTimeout(Duration.ofSeconds(30));
                Work unused = pair.barrier(patient);
              } else {
                told.await();
                Work unused = pair.barrier();
              }
            });
  }

  /** What ranks tell each other is gone when they are. */
  @Test
  void statusesAreTakenOutOfTheStore() {
    HashStore store = new HashStore();
    RankContext rank =
        new RankContext(
            0,
            2,
            () -> store,
            Duration.ofSeconds(1),
            "host",
            null,
            null,
            FlightRecorderConfig.fromEnvironment(Map.of()));
    Watchdog watchdog = rank.failures().watchdog();
    store.waitFor(List.of("weft/status/0"), Duration.ofSeconds(20));
    assertThat(watchdog).isNotNull();
    rank.close(Duration.ofSeconds(1));
    assertThat(store.check(List.of("weft/status/0"))).isFalse();
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
                    .hasMessageContaining(
                        "rank 0 has given up barrier (seq 2) of group 'world'"
                            + " (OperationTimeoutException) (told ")
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
