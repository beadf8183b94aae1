package dev.weft.c10d.host;

import dev.weft.c10d.RankContext;

/**
 * One rank's connection to all others: its mailbox and a link to each. Thread-safe; lives as long
 * as the rank and serves all its groups.
 */
interface Endpoint extends AutoCloseable {
  /** Where messages for this rank arrive. */
  Mailbox mailbox();

  /** The way to a rank, by global rank; also to itself. */
  Link link(int globalRank);

  /** Says good-bye and lets connections go. */
  @Override
  void close();

  /** The endpoint of a rank, made when first asked for. */
  static Endpoint of(RankContext context) {
    return context.resource(
        Endpoint.class,
        () -> {
          boolean oneProcess = context.isThreadWorld() || context.worldSize() == 1;
          Endpoint made = oneProcess ? LocalEndpoint.of(context) : new TcpEndpoint(context);
          context.addPeerListener(made.mailbox());
          return made;
        });
  }
}
