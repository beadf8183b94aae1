package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.provider.Arguments;

/** What each rank of {@link MpiTest} runs: the specifications of the host backend, over MPI. */
public final class MpiRank {
  private static final InitOptions MPI =
      InitOptions.DEFAULT.withBackend("mpi").withTimeout(Duration.ofSeconds(60));

  private MpiRank() {}

  private static final class Collective extends CollectiveSpec {
    Collective() {
      super(OnRanks.PROCESSES);
    }
  }

  private static final class PointToPoint extends PointToPointSpec {
    PointToPoint() {
      super(OnRanks.PROCESSES);
    }
  }

  private static final class Mismatch extends MismatchSpec {
    Mismatch() {
      super(OnRanks.PROCESSES);
    }
  }

  /** Arguments: what to run. */
  public static void main(String[] args) throws Exception {
    try (World world = Distributed.init(MPI)) {
      switch (args[0]) {
        case "specifications" -> specifications();
        case "groups" -> groups(world);
        case "timeouts" -> timeouts(world);
        case "hello" -> say(world, "ok hello " + world.size() + " " + world.group());
        case "throws-on-1" -> throwsOnOne(world);
        default -> throw new IllegalArgumentException(args[0]);
      }
    }
    if (args[0].equals("groups")) {
      again();
    }
  }

  private static void say(World world, String text) {
    if (world.rank() == 0) {
      System.out.println(text);
      System.out.flush();
    }
  }

  private interface Step {
    void run() throws Exception;
  }

  private static void step(String name, Step step) {
    try {
      step.run();
    } catch (Exception | AssertionError e) {
      System.out.println("failed " + name + " on rank " + Distributed.rank() + ": " + e);
      e.printStackTrace();
      Runtime.getRuntime().halt(5);
    }
    Work unused = Distributed.barrier();
    if (Distributed.rank() == 0) {
      System.out.println("ok " + name);
      System.out.flush();
    }
  }

  private static void specifications() {
    step("P62: reading through null is an exception still", NullChecks::survive);
    Collective collective = new Collective();
    for (ReduceOp op : CollectiveSpec.reductions().toList()) {
      step("all_reduce and reduce, " + op, () -> collective.allReduceAndReduce(op));
    }
    for (DType dtype : DType.values()) {
      step("moves without reduction, " + dtype, () -> collective.movesWithoutReduction(dtype));
      step("tensor forms, " + dtype, () -> collective.tensorForms(dtype));
    }
    for (DType dtype : new DType[] {DType.FLOAT16, DType.BFLOAT16}) {
      step("halves are rounded once, " + dtype, () -> collective.halvesAreRoundedOnce(dtype));
    }
    for (DType dtype : new DType[] {DType.FLOAT64, DType.FLOAT32, DType.BFLOAT16}) {
      step("NaN is kept, " + dtype, () -> collective.notANumberIsKept(dtype));
    }
    step("inputs in the output", () -> collective.inputsMayLieInTheOutput(DType.FLOAT32));
    PointToPoint messages = new PointToPoint();
    step("tags", messages::tagsSelectAndOrderIsKeptWithinATag);
    step("sizes must fit", messages::sizesMustFit);
    step("posting never blocks", messages::postingNeverBlocks);
    step("a send that timed out is gone", messages::aSendThatTimedOutIsGone);
    step("any source, strided, empty", messages::anySourceStridedAndEmpty);
    Mismatch mismatch = new Mismatch();
    for (Arguments a : MismatchSpec.mismatches().toList()) {
      var named = (org.junit.jupiter.api.Named<?>) a.get()[0];
      @SuppressWarnings("unchecked") // as it was made
      List<String> parts = (List<String>) a.get()[1];
      step(
          "mismatch of " + named.getName(),
          () -> mismatch.isTheSameErrorEverywhere((MismatchSpec.Call) named.getPayload(), parts));
    }
    step("asynchronous", MpiRank::asynchronous);
  }

  /** Many under way, in several groups, awaited in another order. */
  private static void asynchronous() {
    int rank = Distributed.rank();
    int n = Distributed.worldSize();
    ProcessGroup second = Distributed.newGroup();
    List<StridedTensor> tensors = new ArrayList<>();
    List<Work> works = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      StridedTensor t = Tensors.empty(DType.FLOAT32, 1000);
      for (int k = 0; k < 1000; k++) {
        Values.put(t, k, rank + i);
      }
      tensors.add(t);
      ProcessGroup group = i % 2 == 0 ? second : Distributed.world();
      works.add(group.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC));
    }
    for (int i = works.size() - 1; i >= 0; i--) {
      works.get(i).await();
      double expected = n * (n - 1) / 2.0 + n * i;
      assertThat(Values.get(tensors.get(i), 999)).isEqualTo(expected);
    }
    second.destroy();
  }

  private static void groups(World world) {
    int rank = world.rank();
    int last = world.size() - 1;
    step(
        "different members at once",
        () -> {
          // P37: the first and the last meet while the others make groups of their own.
          ProcessGroup ends = Distributed.newGroup(0, last);
          ProcessGroup middle = Distributed.newGroup(1, 2);
          ProcessGroup mine = rank == 0 || rank == last ? ends : middle;
          Tensor t = Tensor.of(new long[] {rank});
          Work unused = mine.allReduce(t, ReduceOp.SUM);
          assertThat(t.toLongArray()[0]).isEqualTo(3);
        });
    step(
        "made in different orders",
        () -> {
          ProcessGroup a = Distributed.newGroup(0, 1, 2);
          ProcessGroup b = Distributed.newGroup(1, 2, 3);
          List<Work> works = new ArrayList<>();
          List<Tensor> tensors = new ArrayList<>();
          for (ProcessGroup g : rank % 2 == 0 ? List.of(a, b) : List.of(b, a)) {
            if (g.isMember()) {
              Tensor t = Tensor.of(new long[] {1});
              tensors.add(t);
              works.add(g.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC));
            }
          }
          works.forEach(Work::await);
          tensors.forEach(t -> assertThat(t.toLongArray()[0]).isEqualTo(3));
        });
    step(
        "split",
        () -> {
          ProcessGroup half =
              Distributed.splitGroup(null, List.of(new int[] {0, 2}, new int[] {1, 3}));
          Tensor t = Tensor.of(new long[] {rank});
          Work unused = half.allReduce(t, ReduceOp.MAX);
          assertThat(t.toLongArray()[0]).isEqualTo(rank % 2 == 0 ? 2 : 3);
        });
    step(
        "many made and destroyed",
        () -> {
          for (int i = 0; i < 100; i++) {
            ProcessGroup g = Distributed.newGroup();
            Tensor t = Tensor.of(new long[] {rank});
            Work unused = g.allReduce(t, ReduceOp.SUM);
            assertThat(t.toLongArray()[0]).isEqualTo(6);
            g.destroy();
          }
        });
  }

  /** The process may join another world when it has left one. */
  private static void again() {
    try (World world = Distributed.init(MPI)) {
      step(
          "joined again",
          () -> {
            Tensor t = Tensor.of(new long[] {world.rank()});
            Work unused = world.group().allReduce(t, ReduceOp.SUM);
            assertThat(t.toLongArray()[0]).isEqualTo(6);
          });
    }
  }

  private static void timeouts(World world) {
    CollectiveOptions brief = CollectiveOptions.SYNC.withTimeout(Duration.ofSeconds(4));
    step(
        "who is missing is named",
        () -> {
          ProcessGroup group = Distributed.newGroup();
          if (world.rank() == 1) {
            world.store().waitFor(List.of("told"));
            return;
          }
          Tensor t = Tensor.of(new float[4]);
          assertThatThrownBy(() -> group.allReduce(t, ReduceOp.SUM, brief))
              .isInstanceOf(OperationTimeoutException.class)
              .hasMessageContaining("all_reduce (seq 1)")
              .hasMessageContaining("rank 1 did not arrive");
          if (world.store().add("tellers", 1) == world.size() - 1) {
            world.store().set("told", "");
          }
        });
    step(
        "abort ends what waits",
        () -> {
          ProcessGroup group = Distributed.newGroup();
          if (world.rank() == 0) {
            Work waiting = group.barrier(CollectiveOptions.ASYNC);
            group.abort(new IllegalStateException("enough"));
            assertThat(catchThrowable(waiting::await)).hasMessageContaining("enough");
          }
        });
  }

  /** As the launcher's main class does for a rank that throws. */
  private static void throwsOnOne(World world) throws InterruptedException {
    Work unused = world.group().barrier();
    if (world.rank() == 1) {
      FailureNotice told =
          FailureNotice.of(1, new IllegalStateException("out of memory in step 2"))
              .publish(world.store());
      assertThat(told.rank()).isEqualTo(1);
      Thread.sleep(60_000); // alive, so that mpirun does not end the others first
    }
    Throwable e = catchThrowable(() -> world.group().barrier());
    assertThat(e)
        .isInstanceOf(PeerFailedException.class)
        .hasMessageContaining("rank 1 failed")
        .hasMessageContaining("out of memory in step 2");
    System.out.println("ok told of the failure");
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }
}
