package dev.weft.c10d.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.GroupContext;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.c10d.ProcessRanks;
import dev.weft.c10d.RankContext;
import dev.weft.c10d.store.HashStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What a step of a collective says of itself. */
class RoundTest {
  private static final class Alone implements Endpoint {
    private final Mailbox mailbox = new Mailbox();

    @Override
    public Mailbox mailbox() {
      return mailbox;
    }

    @Override
    public Link link(int globalRank) {
      throw new AssertionError("nothing is sent");
    }

    @Override
    public void close() {}
  }

  private static HostGroup group(Duration time) {
    RankContext rank = ProcessRanks.rank(1, 4, new HashStore(), time, "tcp");
    GroupContext context = new GroupContext(rank, "g", "", List.of(0, 1, 2, 3), 1, time, null);
    return new HostGroup(context, new Alone());
  }

  /** Who yields a number of times before it sleeps has to see that many. */
  @Test
  void aWaitTellsHowLongItLasts() {
    Duration time = Duration.ofSeconds(20);
    List<Integer> turns = new ArrayList<>();
    try (Round round = new Round(group(time), 7, "all_reduce", Deadline.after(time), true)) {
      round.waitUntil(
          () -> turns.size() == 5_000,
          () -> List.of(3),
          " did not arrive",
          (blocker, nanos, turn) -> turns.add(turn));
    }
    assertThat(turns).startsWith(0, 1, 2).endsWith(4_998, 4_999);
  }

  @Test
  void aStepIsCalledAsTheWhole() {
    Duration time = Duration.ofSeconds(20);
    HostGroup group = group(time);
    HostGroup part = group.part("part", List.of(1, 3));
    List<List<Integer>> missing = new ArrayList<>();
    try (Round whole = new Round(group, 7, "all_reduce", Deadline.after(time), true);
        Round step = whole.step(part, 3)) {
      step.waitUntil(
          () -> !missing.isEmpty(),
          () -> List.of(3),
          " did not arrive",
          (blocker, nanos, turn) -> missing.add(whole.missingRanks()));
      assertThat(missing).containsExactly(List.of(3));
      assertThat(whole.missingRanks()).isEmpty();
    }
    try (Round whole = new Round(group, 7, "all_reduce", Deadline.after(Duration.ZERO), true);
        Round step = whole.step(part, 3)) {
      assertThatThrownBy(
              () ->
                  step.waitUntil(
                      () -> false,
                      () -> List.of(3),
                      " did not arrive",
                      (blocker, nanos, turn) -> {}))
          .isInstanceOf(OperationTimeoutException.class)
          .hasMessage(
              "all_reduce (seq 7) in group 'g' of ranks [0, 1, 2, 3] on rank 1 timed out after 0 ms:"
                  + " rank 3 did not arrive");
    }
  }
}
