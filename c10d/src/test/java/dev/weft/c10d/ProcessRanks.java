package dev.weft.c10d;

import dev.weft.c10d.debug.FlightRecorderConfig;
import dev.weft.c10d.store.Store;
import java.time.Duration;
import java.util.Map;

/**
 * Ranks of a world of processes that live in this one: they share nothing but what processes can.
 */
public final class ProcessRanks {
  private ProcessRanks() {}

  /** A rank as the process's variables say; its connections are made when it first needs them. */
  public static RankContext rank(int rank, int size, Store store, Duration timeout) {
    return rank(rank, size, store, timeout, System.getenv());
  }

  /** A rank whose data move by a transport: {@code tcp} or {@code shm}. */
  public static RankContext rank(
      int rank, int size, Store store, Duration timeout, String transport) {
    return rank(rank, size, store, timeout, Map.of("WEFT_HOST_TRANSPORT", transport));
  }

  /** A rank with these variables alone. */
  public static RankContext rank(
      int rank, int size, Store store, Duration timeout, Map<String, String> environment) {
    return new RankContext(
        rank,
        size,
        () -> store,
        timeout,
        "host",
        null,
        null,
        FlightRecorderConfig.fromEnvironment(Map.of("WEFT_DUMP_ON_TIMEOUT", "0")),
        environment);
  }

  /** Meets the others. */
  public static void connect(RankContext rank) {
    Backend unused = rank.world().backend("cpu");
  }

  /** Leaves the world. */
  public static void leave(RankContext rank) {
    rank.close(Duration.ofSeconds(2));
  }
}
