package dev.weft.c10d.host;

import dev.weft.c10d.DistributedException;
import dev.weft.c10d.FailureNotice;
import dev.weft.c10d.PeerFailedException;
import dev.weft.c10d.RankContext;
import dev.weft.c10d.RendezvousException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A rank whose peers are other processes: a connection to each of them. */
final class TcpEndpoint implements Endpoint, TcpConnection.EndListener {
  private static final Logger LOG = LoggerFactory.getLogger(TcpEndpoint.class);
  private static final long FLUSH_NANOS = 2_000_000_000L;
  private static final long LINGER_NANOS = 500_000_000L;

  private final RankContext context;
  private final Mailbox mailbox = new Mailbox();
  private final @Nullable TcpConnection[] connections;
  private final IoLoop loop;
  private volatile boolean closing;

  /** Connects to all other ranks; they do the same. */
  TcpEndpoint(RankContext context) {
    this.context = context;
    this.connections = new @Nullable TcpConnection[context.worldSize()];
    Map<String, String> environment = context.environment();
    HostTransport transport =
        Meeting.prepared(
            context,
            () -> {
              SharedSizes.check(environment);
              MessageSettings.check(environment);
              return HostTransport.of(environment);
            });
    // Links that are to be slow are no memory.
    RingOpening.Rings rings =
        new RingOpening.Rings(
            context.rank(),
            context.linkShape() == null ? transport : HostTransport.TCP,
            environment);
    try {
      List<TcpConnection> all =
          new Meeting(
                  context,
                  transport,
                  (peer, channel) -> new TcpConnection(peer, channel, mailbox, this, rings))
              .connect();
      for (TcpConnection c : all) {
        connections[c.peer()] = c;
      }
      this.loop = new IoLoop(context.rank(), all);
    } catch (IOException e) {
      throw new RendezvousException("rank " + context.rank() + " cannot connect to the others", e);
    }
  }

  @Override
  public Mailbox mailbox() {
    return mailbox;
  }

  @Override
  public Link link(int globalRank) {
    return Objects.requireNonNull(connections[globalRank]);
  }

  @Override
  public void ended(TcpConnection connection, @Nullable Throwable cause) {
    int peer = connection.peer();
    if (closing) {
      return;
    }
    if (cause == null) {
      context.peerLeft(peer);
      return;
    }
    LOG.debug("the connection to rank {} is lost", peer, cause);
    // Looking into the store can take a while and must not hold up the other connections.
    ProgressThreads.POOL.execute(() -> tell(peer, cause));
  }

  private void tell(int peer, Throwable lost) {
    Optional<FailureNotice> notice = notice();
    if (notice.isPresent() && notice.get().rank() != context.rank()) {
      FailureNotice n = notice.get();
      context.peerFailed(n.rank() < 0 ? peer : n.rank(), Notices.asFailure(n));
    } else {
      // An error of this package says itself what came; another one is the socket's.
      String seen =
          lost instanceof DistributedException
              ? String.valueOf(lost.getMessage())
              : "the connection to it was lost; its process ended without leaving the world, or was"
                  + " killed, or the network between is broken";
      context.peerFailed(peer, new PeerFailedException(seen, lost));
    }
  }

  /** What the store knows of the first failure, if it answers at all. */
  private Optional<FailureNotice> notice() {
    CompletableFuture<Optional<FailureNotice>> asked =
        CompletableFuture.supplyAsync(
            () -> FailureNotice.read(context.store().withTimeout(Notices.TIMEOUT)),
            ProgressThreads.POOL);
    try {
      return asked.get(Notices.TIMEOUT.toMillis(), TimeUnit.MILLISECONDS);
    } catch (ExecutionException | TimeoutException e) {
      LOG.debug("the store does not tell what failed", e);
      return Optional.empty();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return Optional.empty();
    }
  }

  @Override
  public void close() {
    List<TcpConnection> all = new ArrayList<>();
    for (TcpConnection c : connections) {
      if (c != null) {
        all.add(c);
      }
    }
    await(all, FLUSH_NANOS, TcpConnection::isRingFlushed);
    all.forEach(TcpConnection::sayGoodbye);
    await(all, FLUSH_NANOS, TcpConnection::isFlushed);
    closing = true;
    // Closing a socket that still holds unread bytes would take the good-bye back.
    all.forEach(TcpEndpoint::shutDownOutput);
    await(all, LINGER_NANOS, c -> !c.channel().isOpen());
    all.forEach(c -> c.end(null));
    loop.close();
    all.forEach(TcpConnection::release);
    mailbox.close();
  }

  private static void shutDownOutput(TcpConnection c) {
    try {
      if (c.channel().isOpen()) {
        c.channel().shutdownOutput();
      }
    } catch (IOException e) {
      c.end(e);
    }
  }

  private void await(
      List<TcpConnection> all, long nanos, java.util.function.Predicate<TcpConnection> done) {
    long end = System.nanoTime() + nanos;
    while (System.nanoTime() < end && !all.stream().allMatch(done)) {
      LockSupport.parkNanos(this, 500_000);
    }
  }
}
