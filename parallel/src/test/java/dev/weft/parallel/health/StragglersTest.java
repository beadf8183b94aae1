package dev.weft.parallel.health;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.offset;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.parallel.health.Stragglers.Window;
import dev.weft.tensor.Tensor;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

class StragglersTest {
  /** Rank 5 comes 3 ms after the others four times, and has not ended the last call yet. */
  @Test
  void latenessIsTheTimeThatOthersWaitLonger() {
    long ms = 1_000_000;
    List<Window> windows =
        List.of(
            new Window(
                new long[] {1, 2, 3, 4, 5},
                new long[] {4 * ms, 4 * ms, 4 * ms, 4 * ms, ms},
                40 * ms),
            new Window(new long[] {1, 2, 3, 4}, new long[] {ms, ms, ms, ms}, 40 * ms),
            new Window(
                new long[] {1, 2, 3, 4, 5},
                new long[] {4 * ms, 4 * ms, 4 * ms, 4 * ms, ms},
                40 * ms));
    List<Straggler> found = Stragglers.find("dp", List.of(2, 5, 9), windows, 0.1);
    assertThat(found).hasSize(1);
    Straggler slow = found.get(0);
    assertThat(slow.rank()).isEqualTo(5);
    assertThat(slow.collectives()).isEqualTo(4);
    assertThat(slow.last()).isEqualTo(4);
    assertThat(slow.lateSeconds()).isEqualTo(0.012, offset(1e-9));
    assertThat(slow.share()).isEqualTo(0.3, offset(1e-9));
    assertThat(slow)
        .hasToString(
            "rank 5 is slow: over 4 collectives of group 'dp' of ranks [2, 5, 9] it came 12.0 ms"
                + " later than the others in all, last in 4; they spent 30 % of the time waiting"
                + " for it");
    assertThat(Stragglers.find("dp", List.of(2, 5, 9), windows, 0.31)).isEmpty();
  }

  /** Turns at being last are noise: each rank's lateness is someone else's lead. */
  @Test
  void ranksThatTakeTurnsAreNotSlow() {
    List<Window> windows =
        List.of(
            new Window(new long[] {1, 2}, new long[] {100, 10}, 200),
            new Window(new long[] {1, 2}, new long[] {10, 100}, 200));
    assertThat(Stragglers.find("g", List.of(0, 1), windows, 0.05)).isEmpty();
  }

  @Test
  void aSleepingRankIsFoundAndAnEvenWorldIsNot() {
    List<List<Straggler>> found =
        LocalWorld.call(
            3,
            rank -> {
              Stragglers watch = Stragglers.of(List.of(Distributed.world())).withThreshold(0.5);
              steps(rank, 2);
              List<Straggler> slow = watch.check();
              steps(rank, -1);
              assertThat(watch.check()).isEmpty();
              return slow;
            });
    assertThat(found.get(0))
        .singleElement()
        .satisfies(
            s -> {
              assertThat(s.rank()).isEqualTo(2);
              assertThat(s.last()).isGreaterThanOrEqualTo(4);
              assertThat(s.lateSeconds()).isBetween(0.15, 2.0);
            });
    assertThat(found).allMatch(one -> one.equals(found.get(0)));
  }

  /** Five steps of 50 ms of work on one rank, 0 on the others; -1: the same work for all. */
  private static void steps(int rank, int slow) {
    for (int step = 0; step < 5; step++) {
      long until = System.nanoTime() + 50_000_000;
      while ((rank == slow || slow < 0) && System.nanoTime() < until) {
        LockSupport.parkNanos(until - System.nanoTime());
      }
      Work unused = Distributed.allReduce(Tensor.of(new float[] {rank}, 1), ReduceOp.SUM);
    }
  }

  @Test
  void aThresholdIsAPartOfTheTime() {
    LocalWorld.run(
        1,
        rank ->
            assertThatThrownBy(() -> Stragglers.of(List.of()).withThreshold(1.5))
                .hasMessage("threshold is 1.5; expected more than 0 and at most 1"));
  }
}
