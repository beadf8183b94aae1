package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** An operation that does not end names itself, its group and who is missing. */
@Timeout(60)
class TimeoutTest {
  private static LocalWorld world(int size, Way way) {
    LocalWorld world = LocalWorld.of(size);
    return way.of(world);
  }

  @ParameterizedTest
  @EnumSource
  void theMissingRanksAreNamed(Way way) {
    CountDownLatch others = new CountDownLatch(2);
    world(4, way)
        .run(
            rank -> {
              ProcessGroup group =
                  Distributed.newGroup(
                      java.util.List.of(0, 1, 2, 3),
                      GroupOptions.DEFAULT
                          .withTimeout(Duration.ofMillis(300))
                          .withDescription("tp"));
              if (rank == 1 || rank == 3) {
                others.await();
                return;
              }
              long start = System.nanoTime();
              Tensor t = Tensor.of(new float[] {1, 2});
              Throwable failure = catchThrowable(() -> group.allReduce(t, ReduceOp.SUM));
              others.countDown();
              assertThat(System.nanoTime() - start).isLessThan(5_000_000_000L);
              assertThat(failure)
                  .isInstanceOf(OperationTimeoutException.class)
                  .hasMessageContaining("all_reduce (seq 1)")
                  .hasMessageContaining("tp")
                  .hasMessageContaining("300 ms")
                  .hasMessageContaining("ranks [1, 3] did not arrive");
              assertThatThrownBy(group::barrier).hasMessageContaining("unusable");
            });
  }

  @Test
  void aCallCanHaveItsOwnTimeout() {
    CountDownLatch done = new CountDownLatch(1);
    LocalWorld.run(
        2,
        rank -> {
          if (rank == 1) {
            done.await();
            return;
          }
          CollectiveOptions brief = CollectiveOptions.SYNC.withTimeout(Duration.ofMillis(100));
          assertThatThrownBy(() -> Distributed.barrier(null, brief))
              .isInstanceOf(OperationTimeoutException.class)
              .hasMessageContaining("rank 1 did not arrive");
          done.countDown();
        });
  }

  @Test
  void awaitingForAWhileLeavesTheOperationAlone() {
    CountDownLatch tried = new CountDownLatch(1);
    LocalWorld.run(
        2,
        rank -> {
          Tensor t = Tensor.of(new float[] {rank});
          if (rank == 1) {
            tried.await();
            Work unused = Distributed.allReduce(t, ReduceOp.SUM);
            return;
          }
          Work work = Distributed.allReduce(t, ReduceOp.SUM, null, CollectiveOptions.ASYNC);
          assertThatThrownBy(() -> work.await(Duration.ofMillis(200)))
              .isInstanceOf(OperationTimeoutException.class)
              .hasMessageContaining("ranks [1] did not arrive");
          assertThat(work.isCompleted()).isFalse();
          tried.countDown();
          work.await();
          assertThat(work.isSuccess()).isTrue();
          assertThat(t.item()).isEqualTo(1);
        });
  }

  /** Memory that was lent is back when the operation has failed, so it may be freed at once. */
  @ParameterizedTest
  @EnumSource
  void lentMemoryIsTakenBack(Way way) {
    CountDownLatch others = new CountDownLatch(2);
    world(3, way)
        .run(
            rank -> {
              if (rank == 2) {
                others.await();
                return;
              }
              Tensor t = Tensors.empty(DType.FLOAT32, 1 << 20);
              CollectiveOptions brief = CollectiveOptions.SYNC.withTimeout(Duration.ofMillis(200));
              assertThatThrownBy(() -> Distributed.allReduce(t, ReduceOp.SUM, null, brief))
                  .isInstanceOf(OperationTimeoutException.class);
              t.close();
              assertThat(t.storages().get(0).isFreed()).isTrue();
              others.countDown();
            });
  }
}
