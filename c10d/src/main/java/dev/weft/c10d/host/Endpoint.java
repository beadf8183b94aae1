package dev.weft.c10d.host;

import dev.weft.c10d.LinkShape;
import dev.weft.c10d.RankContext;
import java.util.concurrent.locks.LockSupport;

/**
 * One rank's connection to all others: its mailbox and a link to each. Thread-safe; lives as long
 * as the rank and serves all its groups.
 */
interface Endpoint extends AutoCloseable {
  /** Where messages for this rank arrive. */
  Mailbox mailbox();

  /** The way to a rank, by global rank; also to itself. */
  Link link(int globalRank);

  /**
   * Waits a while for messages, on a thread that is enrolled with the mailbox; may return early.
   *
   * @param blocker what waits
   * @param turn how often it has waited before, from 0
   */
  default void pause(Object blocker, long nanos, int turn) {
    LockSupport.parkNanos(blocker, nanos);
  }

  /** Says good-bye and lets connections go. */
  @Override
  void close();

  /** Whether a rank shares this process's memory with all others. */
  static boolean isOneProcess(RankContext context) {
    return context.isThreadWorld() || context.worldSize() == 1;
  }

  /** The endpoint of a rank, made when first asked for. */
  static Endpoint of(RankContext context) {
    return context.resource(
        Endpoint.class,
        () -> {
          Endpoint made =
              isOneProcess(context) ? LocalEndpoint.of(context) : new TcpEndpoint(context);
          context.addPeerListener(made.mailbox());
          LinkShape shape = context.linkShape();
          return shape == null
              ? made
              : new ShapedEndpoint(made, shape, context.rank(), context.worldSize());
        });
  }
}
