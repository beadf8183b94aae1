package dev.weft.bench;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/**
 * Collectives of all kinds and sizes in an order of chance, synchronous and not, with every result
 * checked. All ranks run it together, from the same seed. It ends with an exception where a result
 * is wrong, or at the group's timeout where something stalls.
 */
public final class CollectiveStress {
  private static final int[] SIZES = {1, 7, 100, 1024, 5000, 40_000, 300_000};
  private static final int ROUND = 50;

  private final ProcessGroup group;
  private final Random random;
  private final int n;
  private final int rank;

  /** A run that the seed determines. */
  public CollectiveStress(ProcessGroup group, long seed) {
    this.group = group;
    this.random = new Random(seed);
    this.n = group.size();
    this.rank = group.rank();
  }

  /**
   * Goes on for a while.
   *
   * @return how many collectives were called
   */
  public long run(double seconds) {
    long end = System.nanoTime() + (long) (seconds * 1e9);
    long calls = 0;
    while (true) {
      try (TensorScope scope = TensorScope.open()) {
        for (int i = 0; i < ROUND; i++) {
          step();
        }
        calls += ROUND;
        // Rank 0's clock counts.
        Tensor more = Tensor.of(new float[] {System.nanoTime() < end ? 1 : 0});
        Work unused = group.broadcast(more, 0);
        if (more.item() == 0) {
          return calls;
        }
      }
    }
  }

  private void step() {
    int count = SIZES[random.nextInt(SIZES.length)];
    int kind = random.nextInt(6);
    int root = random.nextInt(n);
    float base = random.nextInt(100);
    if (random.nextInt(4) == 0) {
      several(count, base);
      return;
    }
    switch (kind) {
      case 0 -> {
        Tensor t = filled(count, base + rank);
        Work unused = group.allReduce(t, ReduceOp.SUM);
        check(t, 0, count, n * base + n * (n - 1) / 2f);
      }
      case 1 -> {
        Tensor t = filled(count, base + rank);
        Work unused = group.broadcast(t, root);
        check(t, 0, count, base + root);
      }
      case 2 -> {
        Tensor out = filled(count * n, -1);
        Work unused = group.allGatherIntoTensor(out, filled(count, base + rank));
        for (int r = 0; r < n; r++) {
          check(out, r * count, count, base + r);
        }
      }
      case 3 -> {
        Tensor out = filled(count, -1);
        Work unused = group.reduceScatterTensor(out, filled(count * n, base + rank), ReduceOp.MAX);
        check(out, 0, count, base + n - 1);
      }
      case 4 -> {
        Tensor out = filled(count * n, -1);
        Work unused = group.allToAllSingle(out, filled(count * n, base + rank), null, null);
        for (int r = 0; r < n; r++) {
          check(out, r * count, count, base + r);
        }
      }
      default -> {
        Tensor t = filled(count, base + rank);
        Work unused = group.reduce(t, root, ReduceOp.MIN);
        check(t, 0, count, rank == root ? base : base + rank);
      }
    }
  }

  /** Several at once, awaited in the end; a barrier behind them. */
  private void several(int count, float base) {
    List<Tensor> tensors = new ArrayList<>();
    List<Work> works = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      Tensor t = filled(count, base + rank + i);
      tensors.add(t);
      works.add(group.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC));
    }
    Work unused = group.barrier();
    for (int i = 0; i < 4; i++) {
      works.get(i).await();
      check(tensors.get(i), 0, count, n * (base + i) + n * (n - 1) / 2f);
    }
  }

  private static Tensor filled(int count, float value) {
    float[] values = new float[count];
    Arrays.fill(values, value);
    return Tensor.of(values);
  }

  private void check(Tensor t, int from, int count, float expected) {
    float[] got = t.toFloatArray();
    for (int i = from; i < from + count; i++) {
      if (got[i] != expected) {
        throw new IllegalStateException(
            "rank " + rank + " has " + got[i] + " at " + i + ", expected " + expected);
      }
    }
  }
}
