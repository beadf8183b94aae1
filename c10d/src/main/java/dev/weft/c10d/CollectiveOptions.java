package dev.weft.c10d;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * How a collective is called. Immutable.
 *
 * @param async whether the call returns before the operation is done
 * @param timeout how long the operation may take, or null for the group's timeout
 */
public record CollectiveOptions(boolean async, @Nullable Duration timeout) {
  /** The call returns when the operation is done, and throws when it failed. */
  public static final CollectiveOptions SYNC = new CollectiveOptions(false, null);

  /** The call returns at once. */
  public static final CollectiveOptions ASYNC = new CollectiveOptions(true, null);

  /** Checks the timeout. */
  public CollectiveOptions {
    if (timeout != null && (timeout.isNegative() || timeout.isZero())) {
      throw new IllegalArgumentException("timeout is " + timeout + "; expected more than zero");
    }
  }

  /** Synchronous or asynchronous, with the group's timeout. */
  public static CollectiveOptions async(boolean async) {
    return async ? ASYNC : SYNC;
  }

  /** The same with a timeout of its own. */
  public CollectiveOptions withTimeout(Duration timeout) {
    return new CollectiveOptions(async, timeout);
  }
}
