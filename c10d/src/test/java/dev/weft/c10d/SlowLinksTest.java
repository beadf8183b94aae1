package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.memory.HostMemory;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SlowLinksTest {
  private static LocalWorld world(boolean tcp, LinkShape shape) {
    LocalWorld world = LocalWorld.of(4).slowLinks(shape).timeout(Duration.ofSeconds(60));
    return tcp ? world.overTcp() : world;
  }

  /** A message takes the delay and its bytes over the bandwidth, by the one clock of all ranks. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void messagesBetweenIslandsAreSlow(boolean tcp) {
    LinkShape shape = new LinkShape(2, Duration.ofMillis(30), 10e6);
    List<Long> times =
        world(tcp, shape)
            .call(
                rank -> {
                  Tensor t = Tensor.of(new float[250_000], 250_000); // 1 MB: 100 ms
                  Distributed.barrier().await();
                  long now = System.nanoTime();
                  if (rank == 0) {
                    Distributed.world().send(t, 2, 1).await();
                  } else if (rank == 2) {
                    Distributed.world().recv(t, 0, 1).await();
                    now = System.nanoTime();
                  }
                  Distributed.barrier().await();
                  return now; // when it was sent, and when it was there
                });
    assertThat(times.get(2) - times.get(0)).isGreaterThanOrEqualTo(130_000_000);
  }

  /** The numbers are those of a fast network, whatever the algorithm sends; nothing is left. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void collectivesAreRightAndLeaveNothing(boolean tcp) {
    long before = HostMemory.liveBytes();
    world(tcp, new LinkShape(2, Duration.ofMillis(2), 100e6))
        .run(
            rank -> {
              for (int n : new int[] {1, 1000, 200_000}) {
                float[] mine = new float[n];
                java.util.Arrays.fill(mine, rank + 1);
                Tensor t = Tensor.of(mine, n);
                Distributed.allReduce(t, ReduceOp.SUM).await();
                assertThat(t.toFloatArray()).containsOnly(10);
                Tensor all = Tensor.of(new float[4 * n], 4L * n);
                Work unused =
                    Distributed.world()
                        .allGatherIntoTensor(
                            all, Tensor.of(mine.clone(), n), CollectiveOptions.SYNC);
                assertThat(all.toFloatArray()[3 * n]).isEqualTo(4);
                assertThat(all.toFloatArray()[0]).isEqualTo(1);
                all.close();
                t.close();
              }
            });
    assertThat(HostMemory.liveBytes() - before).isLessThan(4_000_000);
  }

  /** A rank that has all it needs leaves while another still waits for a third one's data. */
  @Test
  void whoHasLeftIsHeardToTheEnd() {
    CountDownLatch there = new CountDownLatch(1);
    LocalWorld.of(3)
        .slowLinks(new LinkShape(1, Duration.ofMillis(1), 1e6))
        .timeout(Duration.ofSeconds(60))
        .run(
            rank -> {
              // From rank 0 to rank 1: 2 s. All other ways: some milliseconds.
              long[] in = {2_000, rank == 0 ? 500_000 : 2_000, 2_000};
              long[] out = {2_000, 2_000, 2_000};
              out[0] = rank == 1 ? 500_000 : 2_000;
              float[] mine = new float[(int) (in[0] + in[1] + in[2])];
              java.util.Arrays.fill(mine, rank + 1);
              Tensor input = Tensor.of(mine, mine.length);
              int length = (int) (out[0] + out[1] + out[2]);
              Tensor output = Tensor.of(new float[length], length);
              Work unused =
                  Distributed.world()
                      .allToAllSingle(output, input, out, in, CollectiveOptions.SYNC);
              assertThat(output.toFloatArray()[(int) (out[0] + out[1] + 5)]).isEqualTo(3);
              if (rank == 1) {
                there.countDown();
              } else if (rank == 0) {
                there.await(); // who leaves sends all at once, and this rank's data are to be late
              }
            });
  }

  @Test
  void theEnvironmentSaysSo() {
    assertThat(LinkShape.fromEnvironment(Map.of())).isNull();
    assertThat(
            LinkShape.fromEnvironment(
                Map.of(
                    "WEFT_LINK_DELAY_MS", "1.5", "WEFT_LINK_MB_S", "20", "WEFT_LINK_ISLAND", "4")))
        .isEqualTo(new LinkShape(4, Duration.ofNanos(1_500_000), 20e6));
    LinkShape delayOnly = LinkShape.fromEnvironment(Map.of("WEFT_LINK_DELAY_MS", "1"));
    assertThat(delayOnly.occupiedNanos(1 << 30)).isZero();
    assertThat(delayOnly.isSlow(0, 1)).isTrue();
    assertThatThrownBy(() -> LinkShape.fromEnvironment(Map.of("WEFT_LINK_MB_S", "fast")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("WEFT_LINK_MB_S is 'fast'");
    assertThatThrownBy(
            () ->
                LinkShape.fromEnvironment(
                    Map.of("WEFT_LINK_DELAY_MS", "1", "WEFT_LINK_ISLAND", "1.5")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("WEFT_LINK_ISLAND is '1.5'");
    assertThatThrownBy(() -> new LinkShape(1, Duration.ofMillis(-1), 1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("delay");
  }
}
