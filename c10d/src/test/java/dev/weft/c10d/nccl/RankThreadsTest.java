package dev.weft.c10d.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.PeerFailedException;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.cuda.Cuda;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Ranks that are threads of one JVM, with a GPU each. */
@NcclTest
@Timeout(240)
class RankThreadsTest {
  private static LocalWorld world(int size) {
    assumeThat(Cuda.deviceCount()).as("GPUs").isGreaterThanOrEqualTo(size);
    return LocalWorld.of(size)
        .backend("cpu:host,cuda:nccl")
        .devices(Device::cuda)
        .timeout(Duration.ofSeconds(60));
  }

  @ParameterizedTest(name = "{1} on {0} ranks")
  @CsvSource({
    "2,collectives",
    "4,collectives",
    "2,messages",
    "4,messages",
    "4,large-batch",
    "2,objects",
    "4,bound-split",
    "3,bound-shrink",
    "2,destroy-any-order",
    "4,two-threads"
  })
  void allRanksGetWhatTheyShould(int size, String program) {
    world(size).run(rank -> RankPrograms.run(program, Distributed.world()));
  }

  @ParameterizedTest(name = "{0} ranks")
  @ValueSource(ints = {2, 4})
  void aRankThatThrowsFreesTheOthers(int size) {
    LocalWorld world = world(size);
    Map<Integer, Throwable> seen = new ConcurrentHashMap<>();
    long start = System.nanoTime();
    assertThatThrownBy(
            () ->
                world.run(
                    rank -> {
                      try {
                        Tensor t = RankPrograms.gpu(1);
                        Distributed.world().allReduce(t, ReduceOp.SUM).await();
                        if (rank == 1) {
                          throw new IllegalStateException("rank 1 has enough");
                        }
                        Work work = Distributed.world().allReduce(t, ReduceOp.SUM);
                        work.await(Duration.ofSeconds(50));
                      } catch (RuntimeException e) {
                        seen.put(rank, e);
                        throw e;
                      }
                    }))
        .hasMessageContaining("rank 1 has enough");
    for (int rank = 0; rank < size; rank++) {
      assertThat(seen.get(rank))
          .as("rank %d", rank)
          .isInstanceOf(rank == 1 ? IllegalStateException.class : PeerFailedException.class)
          .hasMessageContaining("rank 1 has enough");
    }
    assertThat(System.nanoTime() - start).isLessThan(20_000_000_000L);
  }
}
