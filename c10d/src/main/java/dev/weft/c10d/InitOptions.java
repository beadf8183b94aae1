package dev.weft.c10d;

import dev.weft.c10d.store.Store;
import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How a process joins its world. Immutable; set what differs from the defaults.
 *
 * @param initMethod where ranks meet: {@code env://}, {@code tcp://host:port} or {@code
 *     file:///path}; null for {@code env://} where the environment says so, else a world of one
 * @param store an explicit store instead; rank and world size are then needed
 * @param rank this process's rank, or -1 to take it from the environment or the URL
 * @param worldSize the number of ranks, or -1 likewise
 * @param backend such as {@code host} or {@code cpu:host,cuda:nccl}
 * @param timeout how long operations and the meeting may take
 * @param environment the variables to read, {@code System.getenv()} unless set
 */
public record InitOptions(
    @Nullable String initMethod,
    @Nullable Store store,
    int rank,
    int worldSize,
    String backend,
    Duration timeout,
    Map<String, String> environment) {
  /** What the environment says. */
  public static final InitOptions DEFAULT =
      new InitOptions(null, null, -1, -1, "host", Distributed.DEFAULT_TIMEOUT, System.getenv());

  /** Checks the timeout, and copies the variables. */
  public InitOptions {
    if (timeout.isNegative() || timeout.isZero()) {
      throw new IllegalArgumentException("timeout is " + timeout + "; expected more than zero");
    }
    environment = Map.copyOf(environment);
  }

  /** The same with a meeting place. */
  public InitOptions withInitMethod(String url) {
    return new InitOptions(url, store, rank, worldSize, backend, timeout, environment);
  }

  /** The same with a store, a rank and a world size. */
  public InitOptions withStore(Store store, int rank, int worldSize) {
    return new InitOptions(initMethod, store, rank, worldSize, backend, timeout, environment);
  }

  /** The same with a rank and a world size. */
  public InitOptions withRank(int rank, int worldSize) {
    return new InitOptions(initMethod, store, rank, worldSize, backend, timeout, environment);
  }

  /** The same with a backend. */
  public InitOptions withBackend(String backend) {
    return new InitOptions(initMethod, store, rank, worldSize, backend, timeout, environment);
  }

  /** The same with a timeout. */
  public InitOptions withTimeout(Duration timeout) {
    return new InitOptions(initMethod, store, rank, worldSize, backend, timeout, environment);
  }

  /** The same with other environment variables than the process's. */
  public InitOptions withEnvironment(Map<String, String> environment) {
    return new InitOptions(initMethod, store, rank, worldSize, backend, timeout, environment);
  }
}
