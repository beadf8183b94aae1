package dev.weft.c10d.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.c10d.store.HashStore;
import dev.weft.c10d.store.Store;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** How ranks meet before they call NCCL, and what is said where one does not come. */
class ArrivalsTest {
  private final Store store = new HashStore();

  private void come(int rank, int size, Duration timeout) {
    Arrivals.Member member =
        new Arrivals.Member() {
          @Override
          public String describe() {
            return "group 'g' on rank " + rank;
          }

          @Override
          public void throwIfUnusable(String what) {
            if (store.check(java.util.List.of("aborted"))) {
              throw new IllegalStateException(what + ": aborted");
            }
          }
        };
    new Arrivals(member, store, Deadline.after(timeout)).await("k", "meeting", rank, size, r -> r);
  }

  @Test
  void allComeAndLeaveNothingBehind() {
    CompletableFuture<Void> other =
        CompletableFuture.runAsync(() -> come(1, 2, Duration.ofSeconds(20)));
    come(0, 2, Duration.ofSeconds(20));
    other.join();
    assertThat(store.numKeys()).isZero();
  }

  @Test
  void whoNeverCameIsToldFromWhoGaveUp() {
    assertThatThrownBy(() -> come(0, 3, Duration.ofMillis(50)))
        .isInstanceOf(OperationTimeoutException.class)
        .hasMessage(
            "meeting of group 'g' on rank 0 timed out after 50 ms: ranks 1, 2 did not come");
    assertThatThrownBy(() -> come(2, 3, Duration.ofMillis(50)))
        .hasMessageEndingWith("rank 1 did not come; rank 0 gave up");
    assertThatThrownBy(() -> come(1, 3, Duration.ofMillis(50)))
        .hasMessageEndingWith("ranks 0, 2 came, and gave up before the others did");
  }

  /** The last one has said that it is here, and not yet that it is the last. */
  @Test
  void nobodyIsBlamedWhereTimeIsUpAsTheLastOneComes() {
    store.set("k/1", "1".getBytes(java.nio.charset.StandardCharsets.UTF_8));
    assertThatThrownBy(() -> come(0, 2, Duration.ofMillis(50)))
        .hasMessageEndingWith("50 ms: the last rank came in this very moment, too late");
  }

  @Test
  void whoGaveUpMayComeAgain() {
    assertThatThrownBy(() -> come(0, 2, Duration.ofMillis(50)))
        .hasMessageEndingWith("rank 1 did not come");
    allComeAndLeaveNothingBehind();
  }

  @Test
  void anAbortEndsTheWait() {
    CompletableFuture<Void> waiting =
        CompletableFuture.runAsync(() -> come(0, 2, Duration.ofMinutes(5)));
    store.set("aborted", new byte[1]);
    assertThatThrownBy(waiting::join).hasMessageContaining("meeting: aborted");
  }
}
