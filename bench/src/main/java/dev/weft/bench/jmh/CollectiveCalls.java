package dev.weft.bench.jmh;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.funcol.FunctionalCollectives;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;

/** Collectives of 1 KiB between two ranks that are threads; what is allocated is that of both. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@OperationsPerInvocation(TwoRanks.CALLS)
public class CollectiveCalls {
  /** For JMH. */
  public CollectiveCalls() {}

  /** A synchronous call. */
  @Benchmark
  public void allReduce(TwoRanks ranks) {
    ranks.both(CollectiveCalls::synchronous);
  }

  private static void synchronous(ProcessGroup group, Tensor t) {
    Work unused = group.allReduce(t, ReduceOp.SUM);
  }

  /** An asynchronous call that is awaited at once. */
  @Benchmark
  public void allReduceAsyncAwait(TwoRanks ranks) {
    ranks.both((group, t) -> group.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC).await());
  }

  /** A barrier. */
  @Benchmark
  public void barrier(TwoRanks ranks) {
    ranks.both((group, t) -> group.barrier().await());
  }

  /** A functional collective, and one operator on what it returns. */
  @Benchmark
  public void functionalAllReduceAdd(TwoRanks ranks) {
    ranks.both(
        (group, t) -> {
          try (TensorScope scope = TensorScope.open()) {
            Tensor unused = FunctionalCollectives.allReduce(t, ReduceOp.SUM, group).add(1.0);
          }
        });
  }
}
