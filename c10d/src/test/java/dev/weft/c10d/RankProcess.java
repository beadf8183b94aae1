package dev.weft.c10d;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;

/** What a rank of {@link ProcessWorldTest} runs in a JVM of its own. */
public final class RankProcess {
  private RankProcess() {}

  /** Arguments: URL, rank, world size, what to do. */
  public static void main(String[] args) throws IOException {
    InitOptions options =
        InitOptions.DEFAULT
            .withInitMethod(args[0])
            .withRank(Integer.parseInt(args[1]), Integer.parseInt(args[2]))
            .withTimeout(Duration.ofSeconds(60));
    try (World world = Distributed.init(options)) {
      say("joined " + world.rank() + " of " + world.size());
      switch (args[3]) {
        case "collectives" -> collectives(world);
        case "hosts" -> hosts(world);
        case "forever" -> forever(world.group());
        case "forever-brief" ->
            forever(
                Distributed.newGroup(
                    world.group().ranks(),
                    GroupOptions.DEFAULT.withTimeout(Duration.ofSeconds(2))));
        case "throws-on-1" -> throwsOnOne(world);
        case "mismatch" -> {
          Tensor t = Tensors.empty(DType.FLOAT32, world.rank() == 1 ? 5 : 4);
          Work unused = world.group().allReduce(t, ReduceOp.SUM);
        }
        case "no-close" -> {
          Work unused = world.group().barrier();
          say("ending without closing");
          System.exit(0);
        }
        default -> throw new IllegalArgumentException(args[3]);
      }
    } catch (DistributedException e) {
      say("failed: " + e.getClass().getSimpleName() + ": " + e.getMessage());
      System.exit(3);
    }
    say("done");
  }

  private static synchronized void say(String text) {
    System.out.println(text);
    System.out.flush();
  }

  private static void collectives(World world) {
    int rank = world.rank();
    ProcessGroup group = world.group();
    for (int n : new int[] {1, 1000, 300_000}) {
      StridedTensor t = Tensors.empty(DType.FLOAT32, n);
      for (int i = 0; i < n; i++) {
        Values.put(t, i, rank + i % 100);
      }
      Work unused = group.allReduce(t, ReduceOp.SUM);
      double expected = world.size() * ((n - 1) % 100) + world.size() * (world.size() - 1) / 2.0;
      if (Values.get(t, n - 1) != expected) {
        throw new IllegalStateException("got " + Values.get(t, n - 1) + ", want " + expected);
      }
    }
    ProcessGroup pair = Distributed.newGroup(0, world.size() - 1);
    if (pair.isMember()) {
      Tensor t = Tensor.of(new long[] {rank});
      Work unused = pair.allReduce(t, ReduceOp.MAX);
      say("pair " + t.toLongArray()[0]);
    }
    Work unused = group.barrier();
  }

  /** Sums that no order of terms changes, then some whose bits are compared. */
  private static void hosts(World world) {
    ProcessGroup group = world.group();
    collectives(world);
    say("algorithm " + group.backend("cpu").algorithm());
    for (int n : new int[] {1, 1_000, 40_000, 300_001}) {
      float[] values = new float[n];
      for (int i = 0; i < n; i++) {
        values[i] = (float) Math.sin(i + 1000.0 * world.rank());
      }
      Tensor t = Tensor.of(values, n);
      Work unused = group.allReduce(t, ReduceOp.SUM);
      Tensor first = Tensor.of(t.toFloatArray(), n);
      unused = group.broadcast(first, 0);
      if (!Arrays.equals(t.toFloatArray(), first.toFloatArray())) {
        throw new IllegalStateException("sums of " + n + " differ from rank 0's");
      }
    }
  }

  private static void forever(ProcessGroup group) {
    Tensor t = Tensors.empty(DType.FLOAT32, 50_000);
    for (int step = 0; ; step++) {
      Work unused = group.allReduce(t, ReduceOp.MAX);
      if (step == 10) {
        say("running");
      }
    }
  }

  private static void throwsOnOne(World world) {
    Work unused = world.group().barrier();
    if (world.rank() == 1) {
      // As the launcher's main class does for a rank that throws.
      RuntimeException failure = new IllegalStateException("out of memory in step 2");
      FailureNotice told = FailureNotice.of(1, failure).publish(world.store());
      say(told.reason());
      Runtime.getRuntime().halt(1);
    }
    unused = world.group().barrier();
  }
}
