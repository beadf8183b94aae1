package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import dev.weft.tensor.Tensor;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What a small synchronous collective leaves to the garbage collector, without its record. */
@Timeout(120)
class AllocationTest {
  private static final int CALLS = 2_000;

  /** No texts, no copies of data: only what says that the call is under way. */
  private static final long BYTES = 2_400;

  @ParameterizedTest
  @EnumSource(
      value = Way.class,
      names = {"THREADS", "SHM"})
  void aSmallCallLeavesLittle(Way way) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    way.of(LocalWorld.of(2))
        .variable("WEFT_FR_BUFFER_SIZE", "0")
        .timeout(Duration.ofSeconds(60))
        .run(
            rank -> {
              Tensor t = Tensor.of(new float[256]);
              Tensor gathered = Tensor.of(new float[512]);
              long id = Thread.currentThread().getId();
              for (int round = 0; ; round++) {
                long before = threads.getThreadAllocatedBytes(id);
                for (int i = 0; i < CALLS; i++) {
                  Work unused = Distributed.allReduce(t, ReduceOp.SUM);
                  unused = Distributed.barrier();
                  unused = Distributed.world().allGatherIntoTensor(gathered, t);
                }
                long each = (threads.getThreadAllocatedBytes(id) - before) / (3 * CALLS);
                if (round > 0) {
                  assertThat(each).isBetween(1L, BYTES);
                  return;
                }
              }
            });
  }
}
