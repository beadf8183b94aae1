package dev.weft.c10d;

import dev.weft.c10d.store.Store;
import java.time.Duration;

/**
 * The membership of a process in a world. Thread-safe. Closing waits a bounded time for what is
 * under way, then lets go of groups, connections and the store; it may be repeated.
 */
public final class World implements AutoCloseable {
  private static final Duration CLOSE_LIMIT = Duration.ofSeconds(30);

  private final RankContext context;

  World(RankContext context) {
    this.context = context;
  }

  /** This process's rank. */
  public int rank() {
    return context.rank();
  }

  /** The number of ranks. */
  public int size() {
    return context.worldSize();
  }

  /** The group of all ranks. */
  public ProcessGroup group() {
    return context.world();
  }

  /** The store that all ranks share. */
  public Store store() {
    return context.store();
  }

  /** The rank's state. */
  public RankContext context() {
    return context;
  }

  @Override
  public void close() {
    context.close(CLOSE_LIMIT);
  }
}
