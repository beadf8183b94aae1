package dev.weft.c10d;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Who a process is where a backend's own launcher started it. Immutable.
 *
 * @param rank from 0
 * @param worldSize how many ranks the launcher started
 * @param address a host name or an address by which the other ranks reach this one
 * @param channel a way to agree where the store is
 */
public record LaunchedRank(int rank, int worldSize, String address, Channel channel) {
  /** A way from rank 0 to all. */
  public interface Channel {
    /**
     * Sends a text from rank 0 to all; all ranks call it.
     *
     * @param text on rank 0, null elsewhere
     * @return rank 0's text
     * @throws DistributedException if it does not come in time
     */
    String broadcast(@Nullable String text, Duration timeout);
  }
}
