package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

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
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Groups whose ranks are told that they are on several machines. */
@Timeout(120)
class SeveralHostsTest {
  private interface Body {
    void run(int rank, ProcessGroup world) throws Exception;
  }

  /** Ranks on the machines of these names; the first failure is thrown. */
  private static void run(String hosts, Map<String, String> more, Body body) throws Exception {
    String[] names = hosts.split("");
    HashStore store = new HashStore();
    List<Throwable> failures = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    for (int r = 0; r < names.length; r++) {
      Map<String, String> variables = new HashMap<>(more);
      variables.put("WEFT_HOST_ID", "machine " + names[r]);
      RankContext rank =
          ProcessRanks.rank(r, names.length, store, Duration.ofSeconds(20), variables);
      int number = r;
      threads.add(
          new Thread(
              () -> {
                Throwable failure =
                    catchThrowable(
                        () -> {
                          try {
                            body.run(number, rank.world());
                          } finally {
                            ProcessRanks.leave(rank);
                          }
                        });
                if (failure != null) {
                  synchronized (failures) {
                    failures.add(failure);
                  }
                }
              }));
    }
    threads.forEach(Thread::start);
    for (Thread t : threads) {
      t.join();
    }
    if (!failures.isEmpty()) {
      throw new AssertionError(failures.size() + " ranks failed", failures.get(0));
    }
  }

  private static void sum(ProcessGroup world) {
    Tensor t = Tensor.of(new float[] {1});
    Work unused = world.allReduce(t, ReduceOp.SUM);
    assertThat(t.item()).isEqualTo(world.size());
  }

  @ParameterizedTest
  @ValueSource(strings = {"aabb", "abab", "abba", "aabbcc", "aaabbb"})
  void allReducesGoInsideFirst(String hosts) throws Exception {
    int n = hosts.length();
    List<float[]> all = new ArrayList<>();
    run(
        hosts,
        Map.of("WEFT_HIERARCHICAL_BYTES", "0"),
        (rank, world) -> {
          sum(world);
          assertThat(world.backend("cpu").algorithm())
              .isEqualTo("shared memory inside hosts, pairwise messages across");
          for (int size : new int[] {1, 3, 1_000, 50_001}) {
            for (ReduceOp op :
                List.of(ReduceOp.SUM, ReduceOp.AVG, ReduceOp.MAX, ReduceOp.premulSum(0.5))) {
              float[] own = new float[size];
              float[] expected = new float[size];
              for (int i = 0; i < size; i++) {
                own[i] = rank + i % 5;
                float sum = n * (i % 5) + n * (n - 1) / 2f;
                expected[i] =
                    op.equals(ReduceOp.MAX)
                        ? n - 1 + i % 5
                        : op.equals(ReduceOp.SUM)
                            ? sum
                            : op.equals(ReduceOp.AVG) ? sum / n : sum / 2;
              }
              try (TensorScope scope = TensorScope.open()) {
                Tensor t = Tensor.of(own);
                Work unused = world.allReduce(t, op);
                float[] got = t.toFloatArray();
                for (int i = 0; i < size; i++) {
                  assertThat(got[i])
                      .isCloseTo(expected[i], org.assertj.core.data.Offset.offset(1e-5f));
                }
                synchronized (all) {
                  all.add(got);
                }
                unused = world.barrier();
                assertThat(all).hasSize(n).allMatch(g -> Arrays.equals(g, got));
                unused = world.barrier();
                synchronized (all) {
                  all.clear();
                }
                unused = world.barrier();
              }
            }
          }
          Tensor half = Tensor.of(new float[9_000]).add(rank).to(DType.BFLOAT16);
          Work unused = world.allReduce(half, ReduceOp.SUM);
          assertThat(half.to(DType.FLOAT32).toFloatArray()).containsOnly(n * (n - 1) / 2f);
        });
  }

  /** P28: ranks that do not agree are told so, whichever way the data were to go. */
  @Test
  void callsThatDoNotFitAreAnError() throws Exception {
    run(
        "aabb",
        Map.of(),
        (rank, world) -> {
          sum(world);
          Throwable failure =
              catchThrowable(
                  () -> {
                    Work unused =
                        rank == 1
                            ? world.barrier()
                            : world.allReduce(Tensor.of(new float[100_000]), ReduceOp.SUM);
                  });
          assertThat(failure)
              .isInstanceOf(MismatchException.class)
              .hasMessageContaining("rank 1 calls barrier");
        });
  }

  @Test
  void machinesWithDifferentNumbersExchangePairwise() throws Exception {
    checkAlgorithm("aab", Map.of(), "pairwise messages");
    checkAlgorithm("abc", Map.of(), "pairwise messages");
    checkAlgorithm("aabb", Map.of("WEFT_HIERARCHICAL_BYTES", "off"), "pairwise messages");
    checkAlgorithm("aa", Map.of(), "shared memory");
    checkAlgorithm("aabb", Map.of("WEFT_HOST_TRANSPORT", "shm"), null);
  }

  @Test
  void aNamedAlgorithmIsForAllSizes() throws Exception {
    run(
        "aabb",
        Map.of("WEFT_HOST_ALGORITHM", "all_reduce=hierarchical", "WEFT_HIERARCHICAL_BYTES", "off"),
        (rank, world) -> {
          sum(world);
          assertThat(world.backend("cpu").algorithm())
              .isEqualTo(
                  "shared memory inside hosts, pairwise messages (all_reduce=hierarchical) across");
        });
    checkAlgorithm(
        "aabb",
        Map.of("WEFT_HOST_ALGORITHM", "all_reduce=direct"),
        "pairwise messages (all_reduce=direct)");
  }

  @Test
  void aSendThatCannotBeAsAskedForKeepsNoMemory() throws Exception {
    CountDownLatch seen = new CountDownLatch(1);
    run(
        "ab",
        Map.of("WEFT_HOST_TRANSPORT", "shm"),
        (rank, world) -> {
          assertThat(world.backend("cpu").algorithm()).isEmpty(); // it has met the others
          if (rank == 1) {
            seen.await();
            return;
          }
          Throwable failure = null;
          try {
            while (failure == null) { // the first ones go before the other rank has answered
              StridedTensor t = Tensors.empty(DType.FLOAT32, 3, 2);
              Tensor strided = t.t();
              failure =
                  catchThrowable(
                      () -> {
                        Work unused = world.send(strided, 1, 0, CollectiveOptions.ASYNC);
                      });
              t.close();
              assertThat(t.storage().isFreed()).isEqualTo(failure != null);
            }
          } finally {
            seen.countDown();
          }
          assertThat(failure).hasMessageContaining("=shm asks for: rank 1 is on another machine");
        });
  }

  private static void checkAlgorithm(
      String hosts, Map<String, String> more, @Nullable String expected) throws Exception {
    run(
        hosts,
        more,
        (rank, world) -> {
          if (expected == null) {
            assertThat(catchThrowable(() -> sum(world)))
                .hasMessageContaining("WEFT_HOST_TRANSPORT=shm asks for: rank 2 is on another");
            return;
          }
          sum(world);
          assertThat(world.backend("cpu").algorithm()).isEqualTo(expected);
        });
  }
}
