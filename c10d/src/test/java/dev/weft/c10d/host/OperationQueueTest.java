package dev.weft.c10d.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.GroupContext;
import dev.weft.c10d.PeerFailedException;
import dev.weft.c10d.ProcessRanks;
import dev.weft.c10d.RankContext;
import dev.weft.c10d.store.HashStore;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The order of a group's collectives, and its end. */
@Timeout(60)
class OperationQueueTest {
  private static final Duration LONG = Duration.ofMinutes(10);

  private final LocalEndpoint.Hub hub = new LocalEndpoint.Hub(2);

  private OperationQueue queue(int rank) {
    RankContext context = ProcessRanks.rank(rank, 2, new HashStore(), LONG, "tcp");
    GroupContext group = new GroupContext(context, "g", "", List.of(0, 1), rank, LONG, null);
    return new OperationQueue(new HostGroup(group, new LocalEndpoint(rank, hub)));
  }

  private static void call(OperationQueue queue, OperationQueue.Body body) {
    Object unused = queue.submit("barrier", false, LONG, List.of(), List.of(), body);
  }

  /** What fails on one rank alone is told to the others, who would wait for it. */
  @Test
  void anErrorOfOneRankEndsTheCollectiveOnAll() {
    OperationQueue first = queue(0);
    OperationQueue second = queue(1);
    assertThatThrownBy(
            () ->
                call(
                    first,
                    (round, staging) -> {
                      throw new IllegalStateException("no memory to stage in");
                    }))
        .isInstanceOf(IllegalStateException.class);
    String why =
        "rank 0 has given up barrier (seq 1): java.lang.IllegalStateException: no memory to stage in";
    assertThatThrownBy(
            () ->
                call(
                    second,
                    (round, staging) -> {
                      String[] unused = round.toldByAll(1, "");
                    }))
        .isInstanceOf(PeerFailedException.class)
        .hasMessageEndingWith("cannot end: " + why);
    assertThatThrownBy(() -> call(second, (round, staging) -> {})).hasMessageContaining(why);
  }

  /** Where memory is short, what is said of an error may fail as well. */
  @Test
  void anErrorThatCannotBeToldLeavesTheQueueInOrder() {
    OperationQueue queue = queue(0);
    Error odd =
        new Error() {
          private boolean asked;

          @Override
          public String toString() {
            if (!asked) {
              asked = true;
              throw new OutOfMemoryError("no room for words");
            }
            return "odd";
          }
        };
    Throwable thrown = null;
    try {
      call(
          queue,
          (round, staging) -> {
            throw odd;
          });
    } catch (Error e) {
      thrown = e;
    }
    assertThat(thrown == odd).isTrue();
    assertThat(odd.getSuppressed()).hasSize(1);
    assertThat(queue.close(Duration.ofSeconds(5))).isTrue();
  }
}
