package dev.weft.bench;

import dev.weft.bench.CollectiveCase.Operation;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Collectives of float32 vectors between the ranks of a group, in microseconds a call. All ranks
 * run it together. A repetition is a refill, a barrier, and k calls back to back on the clock; its
 * value is that of its slowest rank. The first and the last are checked.
 *
 * <p>A size is that of the whole vector: what all_reduce and broadcast work on, what all_gather
 * makes, what a rank gives to reduce_scatter and all_to_all. Ping-pong is half a round trip of two
 * ranks.
 */
public final class CollectiveBenchmark {
  /** The sizes that are measured unless others are named. */
  public static final List<Long> SIZES =
      List.of(1L << 10, 1L << 14, 1L << 16, 1L << 18, 1L << 20, 1L << 22, 1L << 24, 1L << 26);

  private static final int WARM_UP_CALLS = 20;
  private static final long WARM_UP_SHORT = 2048; // times ranks, as the next
  private static final long WARM_UP_LONG = 1 << 17;

  private final ProcessGroup group;
  private final @Nullable Rows rows;
  private final double warmUpSeconds;

  /** How often a size is measured: warm-up calls for the compiler, repetitions, calls in each. */
  private record Plan(int warmUpCalls, int repetitions, int calls) {
    static Plan of(long bytes) {
      if (bytes <= 1 << 14) {
        return new Plan(4000, 20, 32);
      } else if (bytes <= 1 << 18) {
        return new Plan(400, 20, 8);
      } else if (bytes <= 1 << 22) {
        return new Plan(30, 15, 1);
      }
      return new Plan(2, 7, 1);
    }
  }

  /**
   * A benchmark.
   *
   * @param rows where rank 0 puts the results; null on the others
   * @param warmUpSeconds of all operations, before they are measured; the same on all ranks
   */
  public CollectiveBenchmark(ProcessGroup group, @Nullable Rows rows, double warmUpSeconds) {
    this.group = group;
    this.rows = rows;
    this.warmUpSeconds = warmUpSeconds;
  }

  /** Measures every operation at every size. */
  public void run(List<Long> sizes) {
    warmUp();
    if (rows != null) {
      // The group has chosen by now.
      rows.note("algorithm", group.backend("cpu").algorithm());
    }
    for (Operation operation : Operation.values()) {
      if (operation == Operation.BARRIER) {
        measure(operation, 0);
      } else if (operation != Operation.PINGPONG || group.size() == 2) {
        sizes.forEach(bytes -> measure(operation, bytes));
      }
    }
  }

  /**
   * Every operation, short and long, until the compiler has had its time: processors are scarce
   * where every rank waits busily, and it comes late then. Rank 0's clock counts.
   */
  private void warmUp() {
    try (TensorScope scope = TensorScope.open()) {
      List<CollectiveCase> cases = new ArrayList<>();
      for (Operation operation : Operation.values()) {
        if (operation != Operation.PINGPONG || group.size() == 2) {
          cases.add(new CollectiveCase(operation, group, WARM_UP_SHORT * group.size()));
          cases.add(new CollectiveCase(operation, group, WARM_UP_LONG * group.size()));
        }
      }
      long end = System.nanoTime() + (long) (warmUpSeconds * 1e9);
      boolean more = true;
      while (more) {
        for (int i = 0; i < WARM_UP_CALLS; i++) {
          cases.forEach(CollectiveCase::run);
        }
        cases.forEach(CollectiveCase::reset);
        try (TensorScope turn = TensorScope.open()) {
          Tensor told = Tensor.of(new float[] {System.nanoTime() < end ? 1 : 0});
          Work unused = group.broadcast(told, 0);
          more = told.item() != 0;
        }
      }
    }
  }

  private void measure(Operation operation, long bytes) {
    Plan plan = Plan.of(bytes);
    try (TensorScope scope = TensorScope.open()) {
      CollectiveCase one = new CollectiveCase(operation, group, bytes);
      for (int done = 0; done < plan.warmUpCalls(); done += plan.calls()) {
        double unused = repetition(one, plan.calls(), done == 0);
      }
      double[] micros = new double[plan.repetitions()];
      for (int r = 0; r < micros.length; r++) {
        micros[r] = repetition(one, plan.calls(), r == micros.length - 1);
      }
      Tensor slowest = Tensor.of(micros);
      Work unused = group.allReduce(slowest, ReduceOp.MAX);
      if (rows != null) {
        rows.add(
            operation.label(),
            Timing.Result.of(slowest.toDoubleArray()),
            "n",
            group.size(),
            "bytes",
            bytes);
      }
    }
  }

  private double repetition(CollectiveCase one, int calls, boolean check) {
    one.reset();
    Work unused = group.barrier();
    long start = System.nanoTime();
    for (int i = 0; i < calls; i++) {
      one.run();
    }
    double micros = (System.nanoTime() - start) / 1e3 / calls;
    if (check) {
      one.check(calls);
    }
    return one.isRoundTrip() ? micros / 2 : micros;
  }
}
