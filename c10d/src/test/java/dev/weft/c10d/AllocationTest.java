package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import dev.weft.c10d.debug.FlightRecorderConfig;
import dev.weft.tensor.Tensor;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What a small synchronous collective leaves to the garbage collector. */
@Timeout(120)
class AllocationTest {
  private static final int CALLS = 2_000;

  /** No texts, no copies of data: only what says that the call is under way. */
  private static final long BYTES = 1_200;

  /** The record, and the stack in it: the virtual machine takes memory for 32 frames at a time. */
  private static final long RECORD = 1_000;

  @ParameterizedTest
  @CsvSource({"THREADS, 0, 0", "SHM, 0, 0", "THREADS, 100, " + RECORD, "SHM, 100, " + RECORD})
  void aSmallCallLeavesLittle(Way way, String kept, long record) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    way.of(LocalWorld.of(2))
        .flightRecorder(FlightRecorderConfig.fromEnvironment(Map.of("WEFT_FR_BUFFER_SIZE", kept)))
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
                  assertThat(each).isBetween(1L, BYTES + record);
                  return;
                }
              }
            });
  }
}
