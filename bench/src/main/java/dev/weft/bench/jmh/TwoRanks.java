package dev.weft.bench.jmh;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ProcessGroup;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Creation;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * Two ranks that are threads of this process: JMH's thread calls for rank 0, another one makes the
 * same calls for rank 1.
 */
@State(Scope.Benchmark)
public class TwoRanks {
  /** Calls of both ranks in one invocation, which has one hand-over. */
  static final int CALLS = 1000;

  private static final int ELEMENTS = 256; // 1 KiB of float32
  private static final long PATIENCE = 60;

  /** One call, of either rank. */
  interface Call {
    void make(ProcessGroup group, Tensor tensor);
  }

  private static final Call END = (group, tensor) -> {};

  private final ProcessGroup[] groups = new ProcessGroup[2];
  private final Tensor[] tensors = new Tensor[2];
  private final SynchronousQueue<Call> calls = new SynchronousQueue<>();
  private final CountDownLatch ready = new CountDownLatch(2);
  private final CountDownLatch ended = new CountDownLatch(1);
  private final Thread world = new Thread(this::live, "two-ranks");

  /** Starts the ranks. */
  public TwoRanks() {
    world.setDaemon(true);
    world.start();
    await(ready, "the ranks to start");
  }

  private void live() {
    LocalWorld.run(
        2,
        rank -> {
          groups[rank] = Distributed.world();
          tensors[rank] =
              TensorScope.outside(() -> Creation.zeros(DType.FLOAT32, new long[] {ELEMENTS}));
          ready.countDown();
          if (rank == 0) {
            ended.await();
            return;
          }
          Call call = calls.take();
          while (call != END) {
            repeat(call, 1);
            call = calls.take();
          }
        });
  }

  private void repeat(Call call, int rank) {
    ProcessGroup group = groups[rank];
    Tensor tensor = tensors[rank];
    for (int i = 0; i < CALLS; i++) {
      call.make(group, tensor);
    }
  }

  /** Has both ranks make the call {@value #CALLS} times. */
  void both(Call call) {
    hand(call);
    repeat(call, 0);
  }

  private void hand(Call call) {
    try {
      if (!calls.offer(call, PATIENCE, TimeUnit.SECONDS)) {
        throw new IllegalStateException("rank 1 has ended");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while rank 1 was told what to call", e);
    }
  }

  private static void await(CountDownLatch latch, String what) {
    try {
      if (!latch.await(PATIENCE, TimeUnit.SECONDS)) {
        throw new IllegalStateException("waited " + PATIENCE + " s for " + what);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while waiting for " + what, e);
    }
  }

  /** Ends the ranks. */
  @TearDown
  public void close() throws InterruptedException {
    hand(END);
    ended.countDown();
    world.join(TimeUnit.SECONDS.toMillis(PATIENCE));
    for (Tensor t : tensors) {
      t.close();
    }
  }
}
