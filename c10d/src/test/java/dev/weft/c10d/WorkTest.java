package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.op.Dispatcher;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What a launched operation promises. */
@Timeout(60)
class WorkTest {
  @Test
  void asynchronousCallsReturnAtOnceAndRunInOrder() {
    CountDownLatch late = new CountDownLatch(1);
    LocalWorld.run(
        3,
        rank -> {
          if (rank == 2) {
            late.await();
          }
          List<Tensor> tensors = new ArrayList<>();
          List<Work> works = new ArrayList<>();
          for (int i = 0; i < 20; i++) {
            Tensor t = Tensor.of(new float[] {rank + i, 1});
            tensors.add(t);
            works.add(Distributed.allReduce(t, ReduceOp.SUM, null, CollectiveOptions.ASYNC));
          }
          if (rank == 0) {
            // Rank 2 has not started, so nothing can be done yet.
            assertThat(works).noneMatch(Work::isCompleted);
            assertThat(works.get(0).exception()).isNull();
            late.countDown();
          }
          // A synchronous call behind them keeps the order.
          Tensor last = Tensor.of(new float[] {rank});
          Work sync = Distributed.allReduce(last, ReduceOp.MAX);
          assertThat(sync.sequenceNumber()).isEqualTo(21);
          assertThat(works).allMatch(Work::isSuccess);
          for (int i = 0; i < 20; i++) {
            assertThat(tensors.get(i).toFloatArray()).containsExactly(3 + 3 * i, 3);
            assertThat(works.get(i).sequenceNumber()).isEqualTo(i + 1);
            assertThat(works.get(i).future().join()).containsExactly(tensors.get(i));
            assertThat(works.get(i).completion().join()).isNull();
            works.get(i).await();
          }
        });
  }

  /** Whoever carries them out, the waiting thread or the daemon: the order is that of the calls. */
  @Test
  void waitingAtAnyPlaceKeepsTheOrder() {
    LocalWorld.run(
        2,
        rank -> {
          int calls = 600;
          List<Integer> ended = Collections.synchronizedList(new ArrayList<>());
          List<CompletableFuture<Void>> told = new ArrayList<>();
          List<Tensor> sums = new ArrayList<>();
          List<Work> works = new ArrayList<>();
          for (int i = 0; i < calls; i++) {
            int number = i;
            Tensor sum = Tensor.of(new float[] {i + rank});
            Work work = Distributed.allReduce(sum, ReduceOp.SUM, null, CollectiveOptions.ASYNC);
            told.add(work.future().thenRun(() -> ended.add(number)));
            sums.add(sum);
            works.add(work);
            // The last, one before it, none, and one by another thread.
            switch ((i / 3 + rank) % 4) {
              case 0 -> work.await();
              case 1 -> works.get(i / 2).await();
              case 2 -> {}
              default -> {
                Thread other = new Thread(work::await);
                other.start();
                other.join();
                assertThat(work.isSuccess()).isTrue();
              }
            }
          }
          works.forEach(Work::await);
          for (int i = 0; i < calls; i++) {
            assertThat(sums.get(i).item()).isEqualTo(2.0 * i + 1);
          }
          told.forEach(CompletableFuture::join);
          assertThat(ended).isSorted().hasSize(calls);
        });
  }

  /** An interrupt ends the wait of who was about to carry the operation out, and nothing else. */
  @Test
  void anInterruptedWaitLeavesTheOperationToItself() {
    CyclicBarrier gate = new CyclicBarrier(2);
    LocalWorld.run(
        2,
        rank -> {
          for (int turn = 0; turn < 20; turn++) {
            Tensor sum = Tensor.of(new float[] {turn + rank});
            if (rank == 0) {
              Work work = Distributed.allReduce(sum, ReduceOp.SUM, null, CollectiveOptions.ASYNC);
              Thread.currentThread().interrupt();
              assertThatThrownBy(work::await).hasMessageContaining("interrupted while waiting");
              assertThat(Thread.interrupted()).isTrue();
              int unused = gate.await();
              work.await();
            } else {
              int unused = gate.await();
              Distributed.allReduce(sum, ReduceOp.SUM).await();
            }
            assertThat(sum.item()).isEqualTo(2.0 * turn + 1);
          }
        });
  }

  /** P36: dropped works leave nothing outstanding, and memory released at launch is still read. */
  @ParameterizedTest
  @EnumSource
  void thousandDroppedWorks(Way way) {
    long before = HostMemory.liveBytes();
    LocalWorld world = LocalWorld.of(2);
    way.of(world)
        .run(
            rank -> {
              List<StridedTensor> results = new ArrayList<>();
              try (TensorScope results_ = TensorScope.open()) {
                for (int i = 0; i < 1000; i++) {
                  StridedTensor out = Tensors.empty(DType.FLOAT32, 2, 600);
                  results.add(out);
                  StridedTensor in = Values.tensor(rank + i, DType.FLOAT32, 600);
                  Work dropped =
                      Distributed.allGatherIntoTensor(out, in, null, CollectiveOptions.ASYNC);
                  in.close();
                  assertThat(dropped.opName()).isEqualTo("all_gather_into_tensor");
                }
                Work unused = Distributed.barrier();
                for (int i = 0; i < 1000; i++) {
                  StridedTensor out = results.get(i);
                  assertThat(Values.get(out, 599)).isEqualTo(Values.of(i, 599, DType.FLOAT32));
                  assertThat(Values.get(out, 1199)).isEqualTo(Values.of(1 + i, 599, DType.FLOAT32));
                }
              }
            });
    // Less when the collector frees what earlier tests dropped.
    assertThat(HostMemory.liveBytes()).isLessThanOrEqualTo(before);
  }

  @Test
  void aFailedWorkTellsWhyAndReleasesItsMemory() {
    LocalWorld.run(
        2,
        rank -> {
          ProcessGroup group = Distributed.newGroup();
          StridedTensor t = Tensors.empty(DType.FLOAT32, rank == 0 ? 3000 : 4000);
          Work work = group.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC);
          assertThatThrownBy(work::await).isInstanceOf(MismatchException.class);
          assertThat(work.isCompleted()).isTrue();
          assertThat(work.isSuccess()).isFalse();
          assertThat(work.exception()).isInstanceOf(MismatchException.class);
          assertThat(work.completion()).isCompletedExceptionally();
          t.close();
          assertThat(t.storage().isFreed()).isTrue();
          // What was queued behind it fails as well.
          assertThatThrownBy(() -> group.barrier(CollectiveOptions.ASYNC).await())
              .hasMessageContaining("unusable");
        });
  }

  @Test
  void outputsCountAsChanged() {
    LocalWorld.run(
        2,
        rank -> {
          Tensor t = Tensor.of(new float[] {1});
          int version = t.version();
          Work unused = Distributed.allReduce(t, ReduceOp.SUM);
          assertThat(t.version()).isEqualTo(version + 1);
        });
  }

  /** Each call is one operator of the catalogue, which interceptors see. */
  @Test
  void interceptorsSeeCollectives() {
    LocalWorld.run(
        2,
        rank -> {
          List<String> seen = new ArrayList<>();
          try (Dispatcher.Installed counter =
              Dispatcher.install(
                  call -> {
                    seen.add(
                        call.op().name()
                            + call.inputs().length
                            + call.attrs().get(1)
                            + call.attrs().get(2)
                            + call.attrs().get(3));
                    assertThat(call.attrs().get(0, ProcessGroup.class))
                        .isSameAs(Distributed.world());
                    return call.proceed();
                  })) {
            ProcessGroup world = Distributed.world();
            Tensor t = Tensor.of(new float[] {1, 2});
            Tensor half = Tensor.of(new float[] {1});
            Work unused = world.allReduce(t, ReduceOp.SUM);
            unused = world.allGatherIntoTensor(t, half);
            unused = world.reduceScatterTensor(half, t, ReduceOp.AVG);
            unused = world.allToAllSingle(t, Tensor.of(new float[] {3, 4}), null, null);
            unused = world.broadcast(t, 1);
            unused = world.scatter(half, rank == 0 ? List.of(half, half) : null, 0);
            unused = world.barrier();
          }
          assertThat(seen)
              .containsExactly(
                  "c10d.allreduce_1sumnull1",
                  "c10d.allgather_into_tensor_2nullnull1",
                  "c10d.reduce_scatter_tensor_2avgnull1",
                  "c10d.alltoall_single_2nullnull1",
                  "c10d.broadcast_1null11",
                  "c10d.scatter_" + (rank == 0 ? 3 : 1) + "null01",
                  "c10d.barrier0nullnull0");
        });
  }

  /** A scope whose tensors the same failed work fills does not hide what await has thrown. */
  @Test
  void theFailureOfAPeerComesOutOfAScopeAsItIs() {
    RuntimeException own = new IllegalStateException("rank 1 gives up");
    assertThatThrownBy(
            () ->
                LocalWorld.run(
                    2,
                    rank -> {
                      if (rank == 1) {
                        throw own;
                      }
                      assertThatThrownBy(WorkTest::waitsInAScope)
                          .isInstanceOf(PeerFailedException.class)
                          .hasNoSuppressedExceptions();
                    }))
        .isSameAs(own);
  }

  private static void waitsInAScope() {
    try (TensorScope scope = TensorScope.open()) {
      StridedTensor t = Tensors.empty(DType.FLOAT32, 4);
      Work work = Distributed.allReduce(t, ReduceOp.SUM, null, CollectiveOptions.ASYNC);
      t.storage().setPending(work);
      work.await();
    }
  }
}
