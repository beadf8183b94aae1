package dev.weft.c10d;

import dev.weft.c10d.debug.FlightRecorderConfig;
import dev.weft.c10d.store.HashStore;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * A world of any size in which only one rank exists: the calling thread, which runs as that rank.
 * Collectives end at once and move no data ({@code fake} backend), so that code which depends on
 * shapes, ranks and groups can be tried alone.
 */
public final class FakeWorld {
  private FakeWorld() {}

  /** Runs code as a rank of a world of so many. */
  public static void run(int rank, int size, RankBody.Action body) {
    boolean unused =
        call(
            rank,
            size,
            r -> {
              body.run(r);
              return true;
            });
  }

  /** Runs code as a rank of a world of so many and returns its result. */
  public static <T extends @Nullable Object> T call(int rank, int size, RankBody<T> body) {
    SharedObjects shared = new SharedObjects();
    RankContext context =
        new RankContext(
            rank,
            size,
            () -> shared.get(HashStore.class, HashStore::new),
            Distributed.DEFAULT_TIMEOUT,
            "fake",
            shared,
            null,
            FlightRecorderConfig.fromEnvironment(System.getenv()));
    RankContext before = context.bind();
    try {
      return body.run(rank);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Exception e) {
      throw new DistributedException("rank " + rank + " failed: " + e, e);
    } finally {
      RankContext.restore(before);
      context.close(Duration.ofSeconds(1));
    }
  }
}
