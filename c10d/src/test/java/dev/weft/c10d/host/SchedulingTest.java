package dev.weft.c10d.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.memory.Memory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** The calls of Linux that Java does not have. */
@EnabledOnOs(value = OS.LINUX, architectures = "amd64")
@Timeout(60)
class SchedulingTest {
  /** Half of the longest sleep. */
  private static final long EARLY_NANOS = 10_000_000;

  private static final int TRIES = 20;

  private final ByteBuffer word = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder());
  private final long address = Memory.addressOf(word);

  @BeforeAll
  static void load() throws InterruptedException {
    Scheduling.prepare();
    long end = System.nanoTime() + 30_000_000_000L;
    while (!Scheduling.isReady()) {
      assertThat(System.nanoTime()).as("JNA loads within 30 s").isLessThan(end);
      Thread.sleep(10);
    }
  }

  @Test
  void aWordWithAnotherValueLetsNobodySleep() {
    word.putInt(0, 2);
    long best = Long.MAX_VALUE;
    for (int i = 0; i < TRIES; i++) {
      long start = System.nanoTime();
      Scheduling.sleep(address, 1);
      best = Math.min(best, System.nanoTime() - start);
    }
    assertThat(best).isLessThan(EARLY_NANOS);
  }

  @Test
  void sleepEndsByItselfAndByAWake() throws InterruptedException {
    word.putInt(0, 1);
    long longest = 0;
    for (int i = 0; i < 3; i++) { // a signal may end one early
      long start = System.nanoTime();
      Scheduling.sleep(address, 1);
      longest = Math.max(longest, System.nanoTime() - start);
    }
    assertThat(longest).isGreaterThan(EARLY_NANOS);

    long best = Long.MAX_VALUE;
    for (int i = 0; i < TRIES; i++) {
      CountDownLatch begun = new CountDownLatch(1);
      long[] slept = new long[1];
      Thread sleeper =
          new Thread(
              () -> {
                begun.countDown();
                long from = System.nanoTime();
                Scheduling.sleep(address, 1);
                slept[0] = System.nanoTime() - from;
              });
      sleeper.start();
      begun.await();
      while (sleeper.isAlive()) {
        Scheduling.wake(address);
        Thread.onSpinWait();
      }
      sleeper.join();
      best = Math.min(best, slept[0]);
    }
    assertThat(best).isLessThan(EARLY_NANOS);
  }

  @Test
  void processorsHaveNumbersAndSlicesCanBeShortened() throws InterruptedException {
    assertThat(Scheduling.processor()).isNotNegative();
    long[] slices = new long[2];
    Thread other =
        new Thread(
            () -> {
              slices[0] = Scheduling.slice();
              Scheduling.shortenSlices();
              slices[1] = Scheduling.slice();
            });
    other.start();
    other.join();
    // Kernels before 6.6 have no slices of a thread's own: they tell 0.
    assertThat(slices[1]).isIn(0L, 100_000L);
    assertThat(slices[1]).isLessThanOrEqualTo(Math.max(slices[0], 100_000L));
  }
}
