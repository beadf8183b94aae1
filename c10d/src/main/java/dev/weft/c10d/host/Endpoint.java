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
          Endpoint made = context.isThreadWorld() ? new LocalEndpoint(context) : alone(context);
          context.addPeerListener(made.mailbox());
          return made;
        });
  }

  private static Endpoint alone(RankContext context) {
    if (context.worldSize() > 1) {
      throw new IllegalStateException("processes are not connected");
    }
    return new LocalEndpoint(context.rank(), new LocalEndpoint.Hub(context.worldSize()));
  }
}
