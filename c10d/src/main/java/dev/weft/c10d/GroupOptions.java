package dev.weft.c10d;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * How a group is made. Immutable.
 *
 * @param backend such as {@code host} or {@code cpu:host,cuda:nccl}; null for the world's
 * @param timeout of its operations; null for the world's
 * @param description what it is for, shown in messages
 * @param sortRanks whether group ranks follow the order of global ranks
 * @param backendOptions such as {@code NcclOptions}; null for what the environment says
 */
public record GroupOptions(
    @Nullable String backend,
    @Nullable Duration timeout,
    String description,
    boolean sortRanks,
    @Nullable BackendOptions backendOptions) {
  /** As the world, with sorted ranks. */
  public static final GroupOptions DEFAULT = new GroupOptions(null, null, "", true, null);

  /** Checks the timeout. */
  public GroupOptions {
    if (timeout != null && (timeout.isNegative() || timeout.isZero())) {
      throw new IllegalArgumentException("timeout is " + timeout + "; expected more than zero");
    }
  }

  /** The same with a backend. */
  public GroupOptions withBackend(String backend) {
    return new GroupOptions(backend, timeout, description, sortRanks, backendOptions);
  }

  /** The same with a timeout. */
  public GroupOptions withTimeout(Duration timeout) {
    return new GroupOptions(backend, timeout, description, sortRanks, backendOptions);
  }

  /** The same with a description. */
  public GroupOptions withDescription(String description) {
    return new GroupOptions(backend, timeout, description, sortRanks, backendOptions);
  }

  /** The same with options for the backend. */
  public GroupOptions withBackendOptions(BackendOptions options) {
    return new GroupOptions(backend, timeout, description, sortRanks, options);
  }

  /** The same with group ranks in the order in which the ranks are given. */
  public GroupOptions keepOrder() {
    return new GroupOptions(backend, timeout, description, false, backendOptions);
  }
}
