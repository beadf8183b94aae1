package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.Tensor;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A collective that one rank gives up ends on all at once, in the words of that rank. */
@Timeout(60)
class GivenUpTest {
  private static final Duration LONG = Duration.ofMinutes(10);
  private static final int MANY = 100_000;

  private static boolean isIn(Thread thread, String method) {
    return Arrays.stream(thread.getStackTrace())
        .anyMatch(f -> (f.getClassName() + "." + f.getMethodName()).endsWith(method));
  }

  /** Java does not see that a thread sleeps in a call of the system. */
  private static boolean sleeps(Thread thread) {
    return thread.getState() == Thread.State.TIMED_WAITING || isIn(thread, "Scheduling.sleep");
  }

  private static void awaitSleep(Thread thread, String method) throws InterruptedException {
    while (!(isIn(thread, method) && sleeps(thread))) {
      Thread.sleep(1);
    }
  }

  /** The thread that carries it out is its caller's: an interrupt ends the collective. */
  @ParameterizedTest
  @EnumSource
  void anInterruptOfWhoCarriesItOut(Way way) {
    AtomicReference<Thread> first = new AtomicReference<>();
    CountDownLatch seen = new CountDownLatch(1);
    way.of(LocalWorld.of(3).timeout(LONG))
        .run(
            rank -> {
              Distributed.barrier().await();
              Tensor sum = Tensor.of(new float[MANY], MANY); // more than goes along with a call
              if (rank == 0) {
                first.set(Thread.currentThread());
                assertThatThrownBy(() -> Distributed.allReduce(sum, ReduceOp.SUM))
                    .isInstanceOf(DistributedException.class)
                    .hasMessageContaining("all_reduce (seq 2)")
                    .hasMessageContaining("on rank 0 was interrupted");
                assertThat(Thread.interrupted()).isTrue();
                assertUnusable("all_reduce (seq 2)");
                seen.await();
                return;
              }
              if (rank == 1) {
                Thread other;
                do {
                  other = first.get();
                } while (other == null);
                awaitSleep(other, "Round.waitUntil");
                other.interrupt();
              }
              assertThatThrownBy(() -> Distributed.allReduce(sum, ReduceOp.SUM))
                  .isInstanceOf(PeerFailedException.class)
                  .hasMessageContaining("all_reduce")
                  .hasMessageContaining("rank 0 has given up all_reduce (seq 2)")
                  .hasMessageContaining("was interrupted");
              assertUnusable("rank 0 has given up");
              if (rank == 1) {
                seen.countDown();
              }
            });
  }

  private static void assertUnusable(String why) {
    assertThatThrownBy(() -> Distributed.barrier())
        .isInstanceOf(DistributedException.class)
        .hasMessageContaining("barrier")
        .hasMessageContaining(why);
  }

  /** A queued collective that its waiter carries out, and one that a thread of its own does. */
  @ParameterizedTest
  @EnumSource
  void anInterruptOfWhoAwaitsIt(Way way) {
    for (boolean ended = false; !ended; ) {
      ended = awaitedAndInterrupted(way);
    }
  }

  /** True when the waiter carried it out; else the collective goes on, and the group lives. */
  private boolean awaitedAndInterrupted(Way way) {
    AtomicReference<Thread> first = new AtomicReference<>();
    AtomicReference<Boolean> carried = new AtomicReference<>();
    CountDownLatch decided = new CountDownLatch(1);
    CountDownLatch thrown = new CountDownLatch(1);
    CountDownLatch seen = new CountDownLatch(1);
    way.of(LocalWorld.of(2).timeout(LONG))
        .run(
            rank -> {
              Distributed.barrier().await();
              Tensor sum = Tensor.of(new float[MANY], MANY);
              if (rank == 0) {
                first.set(Thread.currentThread());
                Work work = Distributed.allReduce(sum, ReduceOp.SUM, null, CollectiveOptions.ASYNC);
                assertThatThrownBy(work::await)
                    .isInstanceOf(DistributedException.class)
                    .hasMessageContaining("interrupted");
                assertThat(Thread.interrupted()).isTrue();
                thrown.countDown();
                decided.await();
                if (carried.get()) {
                  assertThat(work.isSuccess()).isFalse();
                  assertUnusable("was interrupted");
                } else {
                  work.await();
                  assertThat(sum.toFloatArray()).containsOnly(0);
                  Distributed.barrier().await();
                }
                seen.await();
                return;
              }
              Thread other;
              do {
                other = first.get();
              } while (other == null);
              boolean waits = false;
              while (!waits) {
                Thread.sleep(1);
                carried.set(isIn(other, "Round.waitUntil"));
                waits =
                    sleeps(other) && carried.get()
                        || other.getState() == Thread.State.WAITING
                            && isIn(other, "CompletableFuture.get");
              }
              other.interrupt();
              decided.countDown();
              thrown.await(); // else the result may come before the interrupt is seen
              if (carried.get()) {
                assertThatThrownBy(() -> Distributed.allReduce(sum, ReduceOp.SUM))
                    .isInstanceOf(PeerFailedException.class)
                    .hasMessageContaining("rank 0 has given up all_reduce (seq 2)");
              } else {
                Distributed.allReduce(sum, ReduceOp.SUM).await();
                Distributed.barrier().await();
              }
              seen.countDown();
            });
    return carried.get();
  }
}
