package dev.weft.bench;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.GroupOptions;
import dev.weft.c10d.InitOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.c10d.World;
import dev.weft.c10d.host.HostOptions;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The algorithms of one collective beside each other, in turns: a group of all ranks for each, with
 * {@link HostOptions} that name it. In microseconds a call of the slowest rank. All ranks run it
 * together, such as those that {@code bench/hosts.py} starts on several hosts.
 */
public final class AlgorithmBenchmark {
  private static final long BYTES_A_ROUND = 400_000;
  private static final int MOST_CALLS = 20;
  private static final int LEAST_ROUNDS = 3;

  private final String operation;
  private final List<String> names;
  private final List<ProcessGroup> groups = new ArrayList<>();

  /**
   * A benchmark; makes the groups, as all ranks do together.
   *
   * @param operation such as {@code all_reduce}
   * @param names of algorithms
   */
  public AlgorithmBenchmark(String operation, List<String> names) {
    this.operation = operation;
    this.names = List.copyOf(names);
    for (String name : names) {
      HostOptions options = HostOptions.DEFAULT.withAlgorithm(operation, name);
      groups.add(
          Distributed.newGroup(
              Distributed.world().ranks(), GroupOptions.DEFAULT.withBackendOptions(options)));
    }
  }

  /**
   * A rank of a world that the environment describes; rank 0 prints the rows.
   *
   * @param args the operation; algorithms, with commas between; sizes in bytes, with commas
   *     between; seconds for each size
   */
  public static void main(String[] args) {
    try (World world = Distributed.init(InitOptions.DEFAULT)) {
      Rows rows = world.rank() == 0 ? new Rows("weft-tcp", System.out) : null;
      AlgorithmBenchmark benchmark =
          new AlgorithmBenchmark(args[0], List.of(args[1].split(",", -1)));
      for (String size : args[2].split(",", -1)) {
        benchmark.run(Long.parseLong(size), Double.parseDouble(args[3]), rows);
      }
    }
  }

  /**
   * Measures float32 vectors of a size, after a third of the time for warming up.
   *
   * @param bytes of a rank's vector
   * @param seconds of rank 0's clock
   * @param rows where rank 0 puts the results; null on the others
   */
  public void run(long bytes, double seconds, @Nullable Rows rows) {
    ProcessGroup world = Distributed.world();
    int calls = (int) Math.max(1, Math.min(MOST_CALLS, BYTES_A_ROUND / Math.max(1, bytes)));
    try (TensorScope scope = TensorScope.open()) {
      StridedTensor x = Tensors.empty(DType.FLOAT32, bytes / 4);
      List<double[]> rounds = new ArrayList<>();
      long start = System.nanoTime();
      long warm = start + (long) (seconds * 1e9 / 3);
      long end = start + (long) (seconds * 1e9);
      boolean more = true;
      while (more) {
        double[] micros = round(world, x, calls);
        long now = System.nanoTime();
        // Rank 0's clock counts, both for what is kept and for the end.
        double[] told = {now > warm ? 1 : 0, now < end || rounds.size() < LEAST_ROUNDS ? 1 : 0};
        try (TensorScope turn = TensorScope.open()) {
          Tensor t = Tensor.of(told);
          Work unused = world.broadcast(t, 0);
          told = t.toDoubleArray();
        }
        if (told[0] != 0) {
          rounds.add(micros);
        }
        more = told[1] != 0 || rounds.isEmpty();
      }
      print(world, bytes, rounds, rows);
    }
  }

  private double[] round(ProcessGroup world, StridedTensor x, int calls) {
    double[] micros = new double[groups.size()];
    for (int g = 0; g < micros.length; g++) {
      Work unused = world.barrier();
      long start = System.nanoTime();
      for (int i = 0; i < calls; i++) {
        call(groups.get(g), x);
      }
      micros[g] = (System.nanoTime() - start) / 1e3 / calls;
    }
    return micros;
  }

  private void call(ProcessGroup group, StridedTensor x) {
    Work unused;
    switch (operation) {
      // The largest: values that are reduced again and again stay what they are.
      case "all_reduce" -> unused = group.allReduce(x, ReduceOp.MAX);
      case "reduce" -> unused = group.reduce(x, 0, ReduceOp.MAX);
      case "broadcast" -> unused = group.broadcast(x, 0);
      default -> throw new IllegalArgumentException("operation " + operation + " is not measured");
    }
  }

  private void print(ProcessGroup world, long bytes, List<double[]> rounds, @Nullable Rows rows) {
    for (int g = 0; g < names.size(); g++) {
      int which = g;
      Tensor slowest = Tensor.of(rounds.stream().mapToDouble(r -> r[which]).toArray());
      Work unused = world.allReduce(slowest, ReduceOp.MAX);
      if (rows != null) {
        double[] sorted = slowest.toDoubleArray();
        Arrays.sort(sorted);
        rows.addValue(
            operation,
            sorted[sorted.length / 2],
            "us",
            "algorithm",
            names.get(g),
            "bytes",
            bytes,
            "n",
            world.size(),
            "rounds",
            sorted.length,
            "stat",
            "median");
      }
    }
  }
}
