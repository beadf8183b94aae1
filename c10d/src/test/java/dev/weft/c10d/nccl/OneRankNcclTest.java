package dev.weft.c10d.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.GroupOptions;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.cuda.CudaSleep;
import dev.weft.tensor.cuda.CudaStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** When an operation is done: a world of one on a GPU, behind a sleep of the device. */
@NcclTest
@Timeout(120)
class OneRankNcclTest {
  private static final long SLEEP = 200_000_000L;
  private static final Device GPU = Device.cuda(0);

  private static void alone(java.util.function.Consumer<ProcessGroup> body) {
    LocalWorld.of(1).backend("cpu:host,cuda:nccl").run(rank -> body.accept(Distributed.world()));
  }

  private static StridedTensor ones(int n) {
    float[] values = new float[n];
    java.util.Arrays.fill(values, 1);
    return (StridedTensor) Tensor.of(values, n).to(GPU);
  }

  private static void warm(ProcessGroup g) {
    StridedTensor t = ones(16);
    g.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC).await();
    CudaSleep.nanos(0, 1);
    Cuda.synchronize(0);
  }

  @Test
  void awaitMakesTheStreamWaitAndNotTheHost() {
    alone(
        g -> {
          warm(g);
          StridedTensor t = ones(1 << 20);
          Cuda.synchronize(0);
          CudaSleep.nanos(0, SLEEP);
          Work work = g.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC);
          long start = System.nanoTime();
          work.await();
          long waited = System.nanoTime() - start;
          assertThat(work.isCompleted()).as("done when awaited").isFalse();
          assertThat(waited).isLessThan(20_000_000L);
          CudaStream free = CudaStream.fromPool(0, false);
          try (CudaStream.InUse unused = free.use()) {
            CudaSleep.nanos(0, 1);
          }
          free.synchronize();
          assertThat(work.isCompleted()).as("an unrelated stream waits, too").isFalse();
          Cuda.synchronize(0);
          assertThat(work.isCompleted()).isTrue();
          assertThat(work.isSuccess()).isTrue();
          work.await();
        });
  }

  @Test
  void aFutureIsDoneWhenTheWorkIsNot() throws Exception {
    alone(
        g -> {
          warm(g);
          StridedTensor t = ones(1 << 20);
          CudaSleep.nanos(0, SLEEP);
          Work work = g.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC);
          assertThat(work.future()).isDone();
          assertThat(work.isCompleted()).isFalse();
          assertThat(work.future().join().get(0)).isSameAs(t);
          assertThat(work.isCompleted()).isFalse();
          var completion = work.completion();
          assertThat(completion).isNotDone();
          completion.join();
          assertThat(work.isCompleted()).isTrue();
        });
  }

  @Test
  void blockingModeATimeAndABarrierWaitOnTheHost() {
    alone(
        g -> {
          warm(g);
          ProcessGroup blocking =
              Distributed.newGroup(
                  List.of(0),
                  GroupOptions.DEFAULT
                      .withBackend("nccl")
                      .withBackendOptions(NcclOptions.fromEnvironment().withBlockingWait(true)));
          StridedTensor t = ones(16);
          blocking.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC).await();
          CudaSleep.nanos(0, SLEEP);
          Work work = blocking.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC);
          work.await();
          assertThat(work.isCompleted()).as("blocking mode").isTrue();

          CudaSleep.nanos(0, SLEEP);
          work = g.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC);
          Work late = work;
          assertThatThrownBy(() -> late.await(Duration.ofMillis(5)))
              .hasMessageContaining("is not done after 5 ms");
          work.await(Duration.ofSeconds(30));
          assertThat(work.isCompleted()).as("with a time").isTrue();

          CudaSleep.nanos(0, SLEEP);
          work = g.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC);
          ProcessGroup only =
              Distributed.newGroup(List.of(0), GroupOptions.DEFAULT.withBackend("nccl"));
          work.await();
          only.barrier();
          assertThat(work.isCompleted()).as("before a barrier's end").isTrue();
        });
  }

  /** A synchronous call goes to the caller's stream, and an asynchronous one to another. */
  @Test
  void aSynchronousCallUsesTheCurrentStream() {
    alone(
        g -> {
          warm(g);
          StridedTensor t = ones(16);
          CudaStream own = CudaStream.fromPool(0, false);
          try (CudaStream.InUse unused = own.use()) {
            NcclWork sync = (NcclWork) g.allReduce(t, ReduceOp.SUM);
            NcclWork async = (NcclWork) g.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC);
            assertThat(sync.stream()).isSameAs(own);
            assertThat(async.stream()).isNotSameAs(own);
            async.await();
          }
          own.synchronize();
        });
  }

  @Test
  @DisplayName("P36: memory is held until the device is done, though nobody waits")
  void dropped() throws Exception {
    alone(
        g -> {
          warm(g);
          List<StridedTensor> tensors = new ArrayList<>();
          CudaSleep.nanos(0, SLEEP);
          try (TensorScope scope = TensorScope.open()) {
            for (int i = 0; i < 200; i++) {
              StridedTensor t = Tensors.empty(DType.FLOAT32, GPU, 16);
              tensors.add(t);
              Work unused = g.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC);
            }
          }
          assertThat(tensors).as("held").noneMatch(t -> t.storage().isFreed());
          Cuda.synchronize(0);
          long end = System.nanoTime() + 10_000_000_000L;
          while (System.nanoTime() < end
              && tensors.stream().anyMatch(t -> !t.storage().isFreed())) {
            Thread.onSpinWait();
          }
          assertThat(tensors).as("let go of").allMatch(t -> t.storage().isFreed());
        });
  }

  @Test
  void whatWasAwaitedOnItsOwnStreamIsLetGoOfAtOnce() {
    alone(
        g -> {
          warm(g);
          CudaSleep.nanos(0, SLEEP);
          StridedTensor t = TensorScope.outside(() -> Tensors.empty(DType.FLOAT32, GPU, 16));
          Work work = g.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC);
          work.await();
          t.close();
          assertThat(t.storage().isFreed()).isTrue();
          assertThat(work.isCompleted()).isFalse();
          Cuda.synchronize(0);
        });
  }

  @Test
  @DisplayName("P40: more ranks than GPUs in one process are refused, with the reason")
  void ranksOfOneProcessDoNotShareAGpu() {
    int ranks = Cuda.deviceCount() + 1;
    assertThatThrownBy(
            () ->
                LocalWorld.of(ranks)
                    .backend("cpu:host,cuda:nccl")
                    .devices(r -> Device.cuda(r % Cuda.deviceCount()))
                    .run(rank -> {}))
        .hasMessageContaining("both use cuda:0")
        .hasMessageContaining("NCCL_HOSTID");
  }

  @Test
  void aDestroyedGroupSaysSo() {
    alone(
        g -> {
          ProcessGroup other =
              Distributed.newGroup(List.of(0), GroupOptions.DEFAULT.withBackend("nccl"));
          Work unused = other.allReduce(ones(4), ReduceOp.SUM);
          int before = Nccl.communicators().size();
          other.destroy();
          other.destroy();
          assertThat(Nccl.communicators()).hasSize(before - 1);
          assertThatThrownBy(() -> other.allReduce(ones(4), ReduceOp.SUM))
              .hasMessageContaining("has been destroyed");
        });
  }

  @Test
  void allCollectivesOfOneRank() {
    alone(
        g -> {
          StridedTensor t = ones(4);
          StridedTensor out = Tensors.empty(DType.FLOAT32, GPU, 4);
          for (boolean async : new boolean[] {false, true}) {
            CollectiveOptions o = CollectiveOptions.async(async);
            g.allReduce(t, ReduceOp.AVG, o).await();
            g.allReduce(t, ReduceOp.premulSum(2), o).await();
            g.reduce(t, 0, ReduceOp.MAX, o).await();
            g.broadcast(t, 0, o).await();
            g.allGatherIntoTensor(out, t, o).await();
            g.allGather(List.of(out), t, o).await();
            g.reduceScatterTensor(out, t, ReduceOp.SUM, o).await();
            g.reduceScatter(out, List.of(t), ReduceOp.SUM, o).await();
            g.allToAllSingle(out, t, null, null, o).await();
            g.allToAllSingle(out, t, new long[] {4}, new long[] {4}, o).await();
            g.allToAll(List.of(out), List.of(t), o).await();
            g.gather(t, List.of(out), 0, o).await();
            g.scatter(out, List.of(t), 0, o).await();
            g.barrier(o).await();
          }
          assertThat(out.toDoubleArray()).containsExactly(4, 4, 4, 4);
        });
  }
}
