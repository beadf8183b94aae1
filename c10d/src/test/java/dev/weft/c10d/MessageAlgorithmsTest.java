package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.weft.c10d.host.HostOptions;
import dev.weft.c10d.store.HashStore;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.DoubleUnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The algorithms by which ranks that exchange messages carry out a collective, and their choice.
 */
@Timeout(240)
class MessageAlgorithmsTest {
  private static final List<String> ALL_REDUCE = List.of("flat", "direct", "ring", "hierarchical");
  private static final List<String> BROADCAST = List.of("flat", "scatter");
  private static final List<String> REDUCE = List.of("flat", "scatter");

  /** None, fewer than ranks, odd, on both sides of what goes along with a call, large. */
  private static final int[] SIZES = {0, 1, 3, 5, 1023, 1025, 2051, 40_003};

  private static List<Integer> all(int n) {
    return IntStream.range(0, n).boxed().toList();
  }

  private static ProcessGroup group(int n, String operation, String name) {
    HostOptions options = HostOptions.DEFAULT.withAlgorithm(operation, name);
    return Distributed.newGroup(all(n), GroupOptions.DEFAULT.withBackendOptions(options));
  }

  private static float[] values(int rank, int size) {
    Random random = new Random(31L * rank + size);
    float[] out = new float[size];
    for (int i = 0; i < size; i++) {
      out[i] = random.nextFloat() - 0.5f;
    }
    return out;
  }

  /** The sum in the order of ranks. */
  private static float[] summed(int n, int size) {
    float[] sum = values(0, size);
    for (int r = 1; r < n; r++) {
      float[] v = values(r, size);
      for (int i = 0; i < size; i++) {
        sum[i] += v[i];
      }
    }
    return sum;
  }

  private static void same(String what, float[] got, float[] expected) {
    assertThat(Arrays.equals(got, expected)).as(what).isTrue();
  }

  /** As many ranks as make trees and rings even and odd. */
  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4, 5, 7, 8})
  void allGiveTheSame(int n) {
    LocalWorld.of(n)
        .overTcp()
        .timeout(Duration.ofSeconds(60))
        .run(rank -> checkAll(rank, n, Distributed.world()));
  }

  /** Threads lend each other their memory: it is to stay as it is while others read it. */
  @Test
  void threadsThatLendMemoryToo() {
    LinkShape shape = new LinkShape(1, Duration.ofNanos(100_000), 1e9);
    LocalWorld.of(3)
        .slowLinks(shape)
        .timeout(Duration.ofSeconds(60))
        .run(rank -> checkAll(rank, 3, Distributed.world()));
  }

  private static void checkAll(int rank, int n, ProcessGroup world) {
    List<ProcessGroup> groups = new ArrayList<>();
    for (String name : ALL_REDUCE) {
      groups.add(group(n, "all_reduce", name));
      checkAllReduce(rank, n, name, groups.get(groups.size() - 1));
    }
    for (String name : REDUCE) {
      groups.add(group(n, "reduce", name));
      checkReduce(rank, n, name, groups.get(groups.size() - 1));
    }
    for (String name : BROADCAST) {
      groups.add(group(n, "broadcast", name));
      checkBroadcast(rank, n, name, groups.get(groups.size() - 1));
    }
    Work unused = world.barrier();
  }

  private static void checkAllReduce(int rank, int n, String name, ProcessGroup group) {
    for (int size : SIZES) {
      try (TensorScope scope = TensorScope.open()) {
        String what = "all_reduce=" + name + " of " + size + " on rank " + rank;
        Tensor t = Tensor.of(values(rank, size));
        Work unused = group.allReduce(t, ReduceOp.SUM);
        float[] got = t.toFloatArray();
        float[] expected = summed(n, size);
        if (!name.equals("ring")) {
          same(what, got, expected);
        }
        for (int i = 0; i < size; i++) {
          assertThat(got[i]).as(what).isCloseTo(expected[i], within(1e-5f));
        }
        Tensor first = Tensor.of(got);
        unused = group.broadcast(first, 0);
        same(what + " beside rank 0", got, first.toFloatArray());
        checkOperations(rank, n, size, what, group);
      }
    }
  }

  private static org.assertj.core.data.Offset<Float> within(float value) {
    return org.assertj.core.data.Offset.offset(value);
  }

  private static void checkOperations(int rank, int n, int size, String what, ProcessGroup group) {
    for (DType dtype : List.of(DType.BFLOAT16, DType.INT8, DType.FLOAT64, DType.BOOL)) {
      List<ReduceOp> operations =
          dtype.isFloatingPoint()
              ? List.of(ReduceOp.AVG, ReduceOp.premulSum(0.5), ReduceOp.MIN)
              : List.of(ReduceOp.SUM, ReduceOp.MAX, ReduceOp.BXOR);
      for (ReduceOp op : operations) {
        StridedTensor t = Values.tensor(rank, dtype, size);
        StridedTensor one = Tensors.empty(dtype, 1);
        DoubleUnaryOperator in =
            v -> {
              Values.put(one, 0, v);
              return Values.get(one, 0);
            };
        Work unused = group.allReduce(t, op);
        double[] got = Values.all(t);
        for (int i = 0; i < size; i++) {
          double expected = in.applyAsDouble(Values.reduced(op, dtype, n, i));
          if (got[i] != expected) {
            assertThat(got[i]).as("%s %s %s at %s", what, op, dtype, i).isEqualTo(expected);
          }
        }
      }
    }
  }

  private static void checkReduce(int rank, int n, String name, ProcessGroup group) {
    for (int size : SIZES) {
      for (int root : new int[] {0, n - 1}) {
        try (TensorScope scope = TensorScope.open()) {
          Tensor t = Tensor.of(values(rank, size));
          Work unused = group.reduce(t, root, ReduceOp.SUM);
          same(
              "reduce=" + name + " of " + size + " to " + root + " on rank " + rank,
              t.toFloatArray(),
              rank == root ? summed(n, size) : values(rank, size));
        }
      }
    }
  }

  private static void checkBroadcast(int rank, int n, String name, ProcessGroup group) {
    for (int size : SIZES) {
      for (int root = 0; root < n; root++) {
        try (TensorScope scope = TensorScope.open()) {
          Tensor t = Tensor.of(values(rank, size));
          Work unused = group.broadcast(t, root);
          same(
              "broadcast=" + name + " of " + size + " from " + root + " on rank " + rank,
              t.toFloatArray(),
              values(root, size));
        }
      }
    }
  }

  @Test
  void theGroupSaysWhatIsNamed() {
    LocalWorld.of(2)
        .overTcp()
        .variable("WEFT_HOST_ALGORITHM", "broadcast=scatter, all_reduce=ring")
        .run(
            rank -> {
              Work unused = Distributed.barrier();
              assertThat(Distributed.world().backend("cpu").algorithm())
                  .isEqualTo("pairwise messages (all_reduce=ring, broadcast=scatter)");
              ProcessGroup other = group(2, "reduce", "scatter");
              unused = other.barrier();
              assertThat(other.backend("cpu").algorithm())
                  .isEqualTo("pairwise messages (reduce=scatter)");
            });
  }

  @Test
  void whatThereIsNotIsAnErrorThatSaysWhatThereIs() {
    assertThatThrownBy(() -> HostOptions.DEFAULT.withAlgorithm("all_reduce", "spiral"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("all_reduce=spiral; expected some of")
        .hasMessageContaining("all_reduce=flat|direct|ring|hierarchical");
    assertThatThrownBy(() -> HostOptions.DEFAULT.withAlgorithm("all_gather", "flat"))
        .hasMessageContaining("all_gather=flat; expected some of");
    assertThatThrownBy(() -> HostOptions.parse("V", "ring"))
        .hasMessageContaining("V is 'ring'; expected operation=algorithm");
    assertThatThrownBy(() -> HostOptions.parse("V", "reduce=flat,reduce=scatter"))
        .hasMessageContaining("expected reduce once");
    assertThat(HostOptions.parse("V", " ")).isEqualTo(HostOptions.DEFAULT);
  }

  /** What every rank's first collective throws where each has variables of its own. */
  private static List<Throwable> failures(List<Map<String, String>> variables) throws Exception {
    int n = variables.size();
    HashStore store = new HashStore();
    List<Throwable> failures = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    for (int r = 0; r < n; r++) {
      Map<String, String> own = new HashMap<>(variables.get(r));
      own.put("WEFT_HOST_ID", r < n / 2 ? "a" : "b");
      RankContext rank = ProcessRanks.rank(r, n, store, Duration.ofSeconds(20), own);
      threads.add(
          new Thread(
              () -> {
                Throwable failure =
                    catchThrowable(
                        () -> {
                          Work unused = rank.world().barrier();
                        });
                synchronized (failures) {
                  failures.add(failure);
                }
                ProcessRanks.leave(rank);
              }));
    }
    threads.forEach(Thread::start);
    for (Thread t : threads) {
      t.join();
    }
    return failures;
  }

  private static void allFail(List<Map<String, String>> variables, String... words)
      throws Exception {
    assertThat(failures(variables))
        .hasSize(variables.size())
        .allSatisfy(
            f ->
                assertThat(f)
                    .isInstanceOf(RendezvousException.class)
                    .hasMessageContainingAll(words));
  }

  /** P28: ranks that took different ways would wait for each other until time is up. */
  @Test
  void ranksWhoseSettingsDifferAreToldSo() throws Exception {
    allFail(
        List.of(Map.of(), Map.of("WEFT_HOST_ALGORITHM", "all_reduce=ring"), Map.of()),
        "WEFT_HOST_ALGORITHM",
        "'' on rank 0 and 'all_reduce=ring' on rank 1; expected the same on all ranks");
    allFail(
        List.of(Map.of(), Map.of(), Map.of(), Map.of("WEFT_HIERARCHICAL_BYTES", "off")),
        "WEFT_HIERARCHICAL_BYTES is '",
        "on rank 0 and 'off' on rank 3");
  }

  /** One rank's mistake is told to all, at once. */
  @Test
  void settingsThatCannotBeReadFailOnAllRanks() throws Exception {
    allFail(
        List.of(Map.of(), Map.of("WEFT_HIERARCHICAL_BYTES", "many"), Map.of()),
        "rank 1 cannot meet the others: WEFT_HIERARCHICAL_BYTES is 'many'; expected a number of bytes");
    allFail(
        List.of(Map.of(), Map.of(), Map.of("WEFT_HOST_ALGORITHM", "reduce=ring")),
        "rank 2 cannot meet the others: WEFT_HOST_ALGORITHM has reduce=ring; expected some of");
    allFail(
        List.of(Map.of("WEFT_SHM_CHUNK", "-5"), Map.of()),
        "rank 0 cannot meet the others: WEFT_SHM_CHUNK is -5; expected");
  }
}
