package dev.weft.c10d.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.weft.c10d.ProcessRanks;
import dev.weft.c10d.RankContext;
import dev.weft.c10d.RendezvousException;
import dev.weft.c10d.store.HashStore;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** P46: ranks that cannot meet say why at once, all of them, and not when their time is up. */
@Timeout(60)
class MeetingTest {
  private static final int RANKS = 3;
  private static final Duration LONG = Duration.ofMinutes(10);

  private final HashStore store = new HashStore();

  private static Throwable[] all(ThrowingCallable[] bodies) {
    CompletableFuture<?>[] threads = new CompletableFuture<?>[bodies.length];
    Throwable[] thrown = new Throwable[bodies.length];
    for (int r = 0; r < bodies.length; r++) {
      int rank = r;
      threads[r] = new CompletableFuture<>();
      Thread t =
          new Thread(
              () -> {
                thrown[rank] = catchThrowable(bodies[rank]);
                threads[rank].complete(null);
              });
      t.setDaemon(true);
      t.start();
    }
    CompletableFuture.allOf(threads).orTimeout(20, TimeUnit.SECONDS).join();
    return thrown;
  }

  /** A value that cannot be read on one rank alone, whichever it is. */
  @ParameterizedTest
  @CsvSource({
    "WEFT_SHM_CHUNK, many, a number of bytes, 0",
    "WEFT_SHM_CHUNK, many, a number of bytes, 1",
    "WEFT_SHM_CHUNK, many, a number of bytes, 2",
    "WEFT_SHM_INLINE, -1, 0 to 268435456 bytes, 1",
    "WEFT_SHM_RING, 5, 16384 to 268435456 bytes, 2",
    "WEFT_HIERARCHICAL_BYTES, never, a number of bytes, 0",
    "WEFT_HOST_TRANSPORT, sockets, 'auto, tcp or shm', 1",
  })
  void aBadVariableOfOneRankIsToldOnAll(String name, String value, String expected, int bad) {
    ThrowingCallable[] bodies =
        IntStream.range(0, RANKS)
            .mapToObj(
                r -> {
                  Map<String, String> environment = r == bad ? Map.of(name, value) : Map.of();
                  RankContext rank = ProcessRanks.rank(r, RANKS, store, LONG, environment);
                  return (ThrowingCallable) () -> ProcessRanks.connect(rank);
                })
            .toArray(ThrowingCallable[]::new);
    assertThat(all(bodies))
        .allSatisfy(
            t ->
                assertThat(t)
                    .isInstanceOf(RendezvousException.class)
                    .hasMessageContaining("rank " + bad)
                    .hasMessageMatching("(?s).*" + name + " is '?" + value + "'?;.*")
                    .hasMessageContaining("expected " + expected));
  }

  /** The thread that lets higher ranks in fails: its rank does not wait for them any more. */
  @Test
  void whatEndsTheListenerIsToldOnAll() {
    RankContext[] ranks = new RankContext[RANKS];
    for (int r = 0; r < RANKS; r++) {
      ranks[r] = ProcessRanks.rank(r, RANKS, store, LONG, "tcp");
    }
    Meeting.Maker fails =
        (peer, channel) -> {
          throw new IllegalStateException("no memory for buffers");
        };
    Throwable[] thrown =
        all(
            new ThrowingCallable[] {
              () -> new Meeting(ranks[0], HostTransport.TCP, fails).connect(),
              () -> ProcessRanks.connect(ranks[1]),
              () -> ProcessRanks.connect(ranks[2]),
            });
    assertThat(thrown[0])
        .isInstanceOf(RendezvousException.class)
        .hasMessage(
            "rank 0 cannot let other ranks in any more: java.lang.IllegalStateException: no memory"
                + " for buffers");
    for (int r = 1; r < RANKS; r++) {
      assertThat(thrown[r]).hasMessageContaining("rank 0 failed").hasMessageContaining("no memory");
    }
  }
}
