package dev.weft.c10d;

import dev.weft.c10d.store.Store;
import dev.weft.tensor.Device;
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
 * @param backend such as {@code host} or {@code cpu:host,cuda:nccl}, which is the default where
 *     there is a GPU; {@code host} is it elsewhere
 * @param timeout how long operations and the meeting may take
 * @param environment the variables to read, {@code System.getenv()} unless set
 * @param deviceId the CUDA device that this rank is bound to, or null: it becomes the current one,
 *     the NCCL communicator of the world is made at once, and groups are split from it
 */
public record InitOptions(
    @Nullable String initMethod,
    @Nullable Store store,
    int rank,
    int worldSize,
    String backend,
    Duration timeout,
    Map<String, String> environment,
    @Nullable Device deviceId) {
  /** What the environment says. */
  public static final InitOptions DEFAULT =
      new InitOptions(
          null,
          null,
          -1,
          -1,
          BackendConfig.UNDEFINED,
          Distributed.DEFAULT_TIMEOUT,
          System.getenv(),
          null);

  /** Checks the timeout, and copies the variables. */
  public InitOptions {
    if (timeout.isNegative() || timeout.isZero()) {
      throw new IllegalArgumentException("timeout is " + timeout + "; expected more than zero");
    }
    if (deviceId != null && !deviceId.isCuda()) {
      throw new IllegalArgumentException(
          "deviceId is " + deviceId + "; expected a CUDA device such as cuda:0");
    }
    environment = Map.copyOf(environment);
  }

  /** The same with a meeting place. */
  public InitOptions withInitMethod(String url) {
    return new InitOptions(url, store, rank, worldSize, backend, timeout, environment, deviceId);
  }

  /** The same with a store, a rank and a world size. */
  public InitOptions withStore(Store store, int rank, int worldSize) {
    return new InitOptions(
        initMethod, store, rank, worldSize, backend, timeout, environment, deviceId);
  }

  /** The same with a rank and a world size. */
  public InitOptions withRank(int rank, int worldSize) {
    return new InitOptions(
        initMethod, store, rank, worldSize, backend, timeout, environment, deviceId);
  }

  /** The same with a backend. */
  public InitOptions withBackend(String backend) {
    return new InitOptions(
        initMethod, store, rank, worldSize, backend, timeout, environment, deviceId);
  }

  /** The same with a timeout. */
  public InitOptions withTimeout(Duration timeout) {
    return new InitOptions(
        initMethod, store, rank, worldSize, backend, timeout, environment, deviceId);
  }

  /** The same with other environment variables than the process's. */
  public InitOptions withEnvironment(Map<String, String> environment) {
    return new InitOptions(
        initMethod, store, rank, worldSize, backend, timeout, environment, deviceId);
  }

  /** The same bound to a CUDA device. */
  public InitOptions withDeviceId(Device device) {
    return new InitOptions(
        initMethod, store, rank, worldSize, backend, timeout, environment, device);
  }
}
