package dev.weft.c10d.host;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.FailureNotice;
import dev.weft.c10d.RankContext;
import dev.weft.c10d.RendezvousException;
import dev.weft.c10d.StoreTimeoutException;
import dev.weft.c10d.store.Store;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How the processes of a world connect to each other: each listens, tells its address and a secret
 * through the store, connects to all lower ranks and waits for all higher ones. Used once.
 */
final class Meeting {
  /** Makes the connection object of a peer. */
  interface Maker {
    TcpConnection make(int peer, SocketChannel channel);
  }

  private static final Logger LOG = LoggerFactory.getLogger(Meeting.class);
  private static final long MAGIC = 0x57454654_686f7374L; // "WEFThost"
  private static final int SECRET = 16;
  private static final int HANDSHAKE_MILLIS = 3_000;
  private static final byte WELCOME = 1;
  private static final byte OTHER_TRANSPORT = 2;
  private static final Duration TELLING = Duration.ofSeconds(1);

  /** How often who waits looks whether a rank has failed. */
  private static final Duration LOOK = Duration.ofMillis(300);

  private static final long RETRY_NANOS = 10_000_000;

  private final RankContext context;
  private final HostTransport transport;
  private final Maker maker;
  private final Store store;
  private final Deadline deadline;
  private final byte[] secret = new byte[SECRET];
  private final ConcurrentMap<Integer, TcpConnection> accepted = new ConcurrentHashMap<>();
  private volatile @Nullable RendezvousException refused;
  private volatile String lastStranger = "";
  private long looked = System.nanoTime();

  /**
   * A meeting.
   *
   * @param transport what this rank wants to use, as all others must
   */
  Meeting(RankContext context, HostTransport transport, Maker maker) {
    this.context = context;
    this.transport = transport;
    this.maker = maker;
    this.store = context.store();
    this.deadline = Deadline.after(context.timeout());
    new SecureRandom().nextBytes(secret);
  }

  /**
   * What a rank has to know before it meets the others; what fails here is told to them, who would
   * wait for it.
   */
  static <T> T prepared(RankContext context, Supplier<T> maker) {
    try {
      return maker.get();
    } catch (IllegalArgumentException e) {
      RendezvousException told =
          new RendezvousException(
              "rank " + context.rank() + " cannot meet the others: " + e.getMessage(), e);
      tellOthers(context, told);
      throw told;
    }
  }

  List<TcpConnection> connect() throws IOException {
    List<TcpConnection> all = new ArrayList<>();
    try (ServerSocketChannel listener = ServerSocketChannel.open()) {
      InetAddress address = HostAddress.choose(context.masterAddress());
      listener.bind(new InetSocketAddress(address, 0), context.worldSize());
      InetSocketAddress bound = (InetSocketAddress) listener.getLocalAddress();
      LOG.debug("rank {} listens on {}", context.rank(), bound);
      store.set(
          key(context.rank()),
          bound.getAddress().getHostAddress()
              + " "
              + bound.getPort()
              + " "
              + HexFormat.of().formatHex(secret)
              + " "
              + transport);
      Thread acceptor = new Thread(() -> accept(listener), "weft-accept-" + context.rank());
      acceptor.setDaemon(true);
      acceptor.start();
      // All addresses first: who has been connected to may leave, and take the store along.
      List<String> told = new ArrayList<>();
      for (int peer = 0; peer < context.rank(); peer++) {
        told.add(told(peer));
      }
      for (int peer = 0; peer < context.rank(); peer++) {
        all.add(maker.make(peer, connectTo(peer, told.get(peer))));
      }
      awaitHigher();
    } catch (RuntimeException | IOException e) {
      tellOthers(context, e);
      all.addAll(accepted.values());
      all.forEach(c -> c.end(null));
      throw e;
    }
    all.addAll(accepted.values());
    return all;
  }

  /** Says why this rank does not come, for those who then find it gone. */
  private static void tellOthers(RankContext context, Exception why) {
    try {
      FailureNotice unused =
          FailureNotice.of(context.rank(), why).publish(context.store().withTimeout(TELLING));
    } catch (DistributedException | IllegalStateException e) {
      LOG.debug("rank {} could not tell why it does not come", context.rank(), e);
    }
  }

  /** Why a peer that ended a connection has gone, as far as any rank has told; or empty. */
  private String reasonOf(int peer) {
    try {
      FailureNotice first = FailureNotice.await(store, TELLING);
      return "; rank " + first.rank() + " failed before that: " + first.reason();
    } catch (DistributedException | IllegalStateException e) {
      LOG.debug("nobody has told why rank {} ended the connection", peer, e);
      return "";
    }
  }

  /** Ends the wait for ranks that do not come since one of them has failed. */
  private void checkNotices() {
    looked = System.nanoTime();
    Optional<FailureNotice> notice;
    try {
      notice = FailureNotice.read(store.withTimeout(TELLING));
    } catch (DistributedException | IllegalStateException e) {
      // Its host may have met all and left again, and taken it along.
      LOG.debug("the store does not tell whether a rank has failed", e);
      return;
    }
    if (notice.isPresent() && notice.get().rank() != context.rank()) {
      FailureNotice first = notice.get();
      throw new RendezvousException(
          "rank "
              + context.rank()
              + " cannot meet the others: rank "
              + first.rank()
              + " failed before that: "
              + first.reason(),
          Notices.asFailure(first));
    }
  }

  private RendezvousException differs(int peer, HostTransport theirs) {
    return new RendezvousException(
        HostTransport.VARIABLE
            + " is "
            + transport.value()
            + " on rank "
            + context.rank()
            + " and "
            + theirs.value()
            + " on rank "
            + peer
            + "; expected the same on all ranks");
  }

  private static String key(int rank) {
    return "weft/host/" + rank;
  }

  // ---- lower ranks ----

  private SocketChannel connectTo(int peer, String where) throws IOException {
    String[] told = where.split(" ", -1);
    InetSocketAddress address =
        new InetSocketAddress(InetAddress.getByName(told[0]), Integer.parseInt(told[1]));
    SocketChannel channel = SocketChannel.open();
    try {
      channel.socket().connect(address, Math.max(1, deadline.remainingMillis()));
      prepare(channel);
      DataOutputStream out = new DataOutputStream(channel.socket().getOutputStream());
      byte[] hello = new byte[8 + SECRET + 4 + 1];
      java.nio.ByteBuffer.wrap(hello)
          .putLong(MAGIC)
          .put(HexFormat.of().parseHex(told[2]))
          .putInt(context.rank())
          .put(transport.code());
      out.write(hello);
      out.flush();
      channel.socket().setSoTimeout(Math.max(1, deadline.remainingMillis()));
      int answer = channel.socket().getInputStream().read();
      if (answer == OTHER_TRANSPORT) {
        throw differs(peer, HostTransport.valueOf(told[3]));
      }
      if (answer != WELCOME) {
        throw new IOException("it did not welcome this rank");
      }
      return channel;
    } catch (RendezvousException e) {
      channel.close();
      throw e;
    } catch (IOException e) {
      channel.close();
      throw new RendezvousException(
          "rank "
              + context.rank()
              + " cannot connect to rank "
              + peer
              + " at "
              + address
              + " (set WEFT_HOST_ADDRESS on its machine to an address that others reach): "
              + e.getMessage()
              + reasonOf(peer),
          e);
    }
  }

  private String told(int peer) {
    while (true) {
      Duration left = deadline.remaining();
      try {
        store.waitFor(List.of(key(peer)), left.compareTo(LOOK) < 0 ? left : LOOK);
        return new String(store.get(key(peer)), UTF_8);
      } catch (StoreTimeoutException e) {
        checkNotices();
        if (deadline.hasPassed()) {
          throw new RendezvousException(
              "rank "
                  + context.rank()
                  + " waited "
                  + deadline
                  + " for rank "
                  + peer
                  + " to come to the world of "
                  + context.worldSize(),
              e);
        }
      }
    }
  }

  // ---- higher ranks ----

  private void accept(ServerSocketChannel listener) {
    int expected = context.worldSize() - 1 - context.rank();
    while (accepted.size() < expected) {
      try {
        SocketChannel channel = listener.accept();
        welcome(channel);
      } catch (IOException e) {
        if (!listener.isOpen()) {
          return;
        }
        LOG.debug("a connection was not accepted", e);
        lastStranger = "; the last connection was not accepted: " + e.getMessage();
        LockSupport.parkNanos(this, RETRY_NANOS); // where there are no sockets left, say
      } catch (RuntimeException | Error e) {
        refused =
            new RendezvousException(
                "rank " + context.rank() + " cannot let other ranks in any more: " + e, e);
        return;
      }
    }
  }

  /** Lets a rank in that knows the secret; anyone else is shut out. */
  private void welcome(SocketChannel channel) throws IOException {
    try {
      prepare(channel);
      channel.socket().setSoTimeout(HANDSHAKE_MILLIS);
      DataInputStream in = new DataInputStream(channel.socket().getInputStream());
      long magic = in.readLong();
      byte[] shown = in.readNBytes(SECRET);
      int peer = in.readInt();
      boolean known = magic == MAGIC && MessageDigest.isEqual(shown, secret);
      if (!known || peer <= context.rank() || peer >= context.worldSize()) {
        throw new IOException("a stranger connected from " + channel.getRemoteAddress());
      }
      HostTransport theirs = HostTransport.of(in.readByte());
      if (theirs == null) {
        throw new IOException("rank " + peer + " speaks another version of this protocol");
      }
      if (theirs != transport) {
        channel.socket().getOutputStream().write(OTHER_TRANSPORT);
        channel.close();
        refused = differs(peer, theirs);
        return;
      }
      TcpConnection made = maker.make(peer, channel);
      channel.socket().getOutputStream().write(WELCOME);
      accepted.putIfAbsent(peer, made);
    } catch (IOException | RuntimeException | Error e) {
      channel.close();
      throw e;
    }
  }

  private void awaitHigher() {
    int first = context.rank() + 1;
    while (accepted.size() < context.worldSize() - first) {
      RendezvousException other = refused;
      if (other != null) {
        throw other;
      }
      if (System.nanoTime() - looked > LOOK.toNanos()) {
        checkNotices();
      }
      if (deadline.hasPassed()) {
        List<Integer> missing =
            IntStream.range(first, context.worldSize())
                .filter(r -> !accepted.containsKey(r))
                .boxed()
                .toList();
        throw new RendezvousException(
            "rank "
                + context.rank()
                + " waited "
                + deadline
                + " for ranks "
                + missing
                + " to come to the world of "
                + context.worldSize()
                + lastStranger);
      }
      LockSupport.parkNanos(this, Duration.ofMillis(1).toNanos());
      if (Thread.currentThread().isInterrupted()) {
        throw new RendezvousException("rank " + context.rank() + " was interrupted");
      }
    }
  }

  private static void prepare(SocketChannel channel) throws IOException {
    channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
    channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
  }
}
