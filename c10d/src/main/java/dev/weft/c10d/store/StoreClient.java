package dev.weft.c10d.store;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.StoreException;
import dev.weft.c10d.StoreSilentException;
import dev.weft.c10d.StoreTimeoutException;
import java.io.EOFException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The client end of {@link TcpStore}: connections to one server, of which each call has one for
 * itself while it lasts. Thread-safe. A connection that failed, or whose answer did not come in
 * time, is never used again.
 */
final class StoreClient {
  private static final Logger log = LoggerFactory.getLogger(StoreClient.class);
  private static final int MAX_IDLE = 4;
  private static final long FIRST_PAUSE_MILLIS = 10;
  private static final long LAST_PAUSE_MILLIS = 1000;
  private static final Duration PROBE_TIMEOUT = Duration.ofSeconds(2);

  private final String host;
  private final int port;
  private final @Nullable InetAddress fixedAddress;
  private final Optional<SharedSecret> secret;
  private final Object lock = new Object();
  private final Deque<Connection> idle = new ArrayDeque<>();
  private final Set<Connection> all = new HashSet<>();
  private boolean closed;

  /**
   * Names a server.
   *
   * @param fixedAddress where to connect to instead of what the host name resolves to
   * @param secret what the server must know, too
   */
  StoreClient(
      String host, int port, @Nullable InetAddress fixedAddress, Optional<SharedSecret> secret) {
    this.secret = secret;
    this.host = host;
    this.port = port;
    this.fixedAddress = fixedAddress;
  }

  /**
   * One call: what is sent and read on a connection, which is in step afterwards unless an {@link
   * IOException} comes out.
   */
  interface Exchange<T> {
    T run(Connection connection) throws IOException;
  }

  String endpoint() {
    return (host.contains(":") ? "[" + host + "]" : host) + ":" + port;
  }

  /** Opens the first connection, waiting with growing pauses for a server that is not there yet. */
  void connect(Deadline deadline) {
    long pause = FIRST_PAUSE_MILLIS;
    for (int attempt = 1; ; attempt++) {
      try {
        giveBack(openOnce(deadline));
        return;
      } catch (Connection.SecretException e) {
        throw new StoreException(
            "no connection to the store server at " + endpoint() + ": " + e.getMessage(), e);
      } catch (IOException e) {
        if (Thread.currentThread().isInterrupted()) {
          throw new StoreException(
              "interrupted while connecting to the store server at " + endpoint(), e);
        }
        if (deadline.hasPassed()) {
          throw new StoreTimeoutException(
              "no connection to a store server at %s within %s (%d attempts); the last: %s"
                  .formatted(endpoint(), deadline, attempt, describe(e)),
              e);
        }
        if (attempt == 1) {
          log.info(
              "no store server at {} yet ({}), trying for {}", endpoint(), describe(e), deadline);
        }
      }
      pause(
          Math.min(
              deadline.remainingMillis(), pause + ThreadLocalRandom.current().nextLong(pause)));
      pause = Math.min(LAST_PAUSE_MILLIS, pause * 2);
    }
  }

  private void pause(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoreException(
          "interrupted while connecting to the store server at " + endpoint(), e);
    }
  }

  /** Tries each address of the host once. */
  private Connection openOnce(Deadline deadline) throws IOException {
    InetAddress[] addresses =
        fixedAddress != null ? new InetAddress[] {fixedAddress} : InetAddress.getAllByName(host);
    IOException failure = new UnknownHostException(host);
    for (InetAddress address : addresses) {
      try {
        var connection = Connection.open(new InetSocketAddress(address, port), secret, deadline);
        synchronized (lock) {
          if (closed) {
            connection.close();
            throw closedException();
          }
          all.add(connection);
        }
        return connection;
      } catch (IOException e) {
        failure = e;
      }
    }
    throw failure;
  }

  /** Runs an exchange on a connection of its own. {@code what} names the call in messages. */
  <T> T call(String what, Deadline deadline, Exchange<T> exchange) {
    Connection connection = borrow(what, deadline);
    boolean good = false;
    try {
      T result = exchange.run(connection);
      good = true;
      return result;
    } catch (StoreTimeoutException e) {
      good = true; // what was awaited did not come; the connection is in step
      throw e;
    } catch (SocketTimeoutException e) {
      throw new StoreSilentException(
          "%s: the store server at %s gave no answer within %s"
              .formatted(what, endpoint(), deadline),
          e);
    } catch (IOException e) {
      throw explain(what, e);
    } finally {
      if (good) {
        giveBack(connection);
      } else {
        discard(connection);
      }
    }
  }

  private Connection borrow(String what, Deadline deadline) {
    synchronized (lock) {
      if (closed) {
        throw closedException();
      }
      Connection connection = idle.poll();
      if (connection != null) {
        return connection;
      }
    }
    try {
      return openOnce(deadline.remainingMillis() > 0 ? deadline : Deadline.after(PROBE_TIMEOUT));
    } catch (IOException e) {
      throw explain(what, e);
    }
  }

  private void giveBack(Connection connection) {
    synchronized (lock) {
      if (!closed && idle.size() < MAX_IDLE) {
        idle.push(connection);
        return;
      }
    }
    discard(connection);
  }

  private void discard(Connection connection) {
    synchronized (lock) {
      all.remove(connection);
    }
    try {
      connection.close();
    } catch (IOException e) {
      log.debug("closing a connection to {} failed", endpoint(), e);
    }
  }

  /**
   * Finds out why a connection failed: this store was closed, the thread interrupted, or the server
   * is gone.
   */
  private StoreException explain(String what, IOException failure) {
    synchronized (lock) {
      if (closed) {
        return new StoreException(
            what + ": the store at " + endpoint() + " was closed during the call", failure);
      }
    }
    if (Thread.currentThread().isInterrupted()) {
      return new StoreException(
          what + ": interrupted, talking to the store server at " + endpoint(), failure);
    }
    try {
      giveBack(openOnce(Deadline.after(PROBE_TIMEOUT)));
    } catch (IOException probe) {
      return new StoreException(
          "%s: the store server at %s is gone (%s). The peers of this rank may be well; whoever hosts the store is not"
              .formatted(what, endpoint(), describe(probe)),
          failure);
    }
    return new ConnectionLostException(
        "%s: the store server at %s closed the connection (%s)"
            .formatted(what, endpoint(), describe(failure)),
        failure);
  }

  /** The server dropped one connection, and accepts others. */
  static final class ConnectionLostException extends StoreException {
    private static final long serialVersionUID = 1L;

    ConnectionLostException(String message, Throwable cause) {
      super(message, cause);
    }
  }

  private StoreException closedException() {
    return new StoreException("the store at " + endpoint() + " is closed");
  }

  private String describe(IOException e) {
    if (e instanceof UnknownHostException) {
      return "the host name '" + host + "' does not resolve";
    }
    if (e instanceof ConnectException) {
      return "connection refused".equalsIgnoreCase(e.getMessage())
          ? "connection refused"
          : String.valueOf(e.getMessage());
    }
    if (e instanceof SocketTimeoutException) {
      return "no answer";
    }
    if (e instanceof EOFException) {
      return "end of stream";
    }
    return e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
  }

  void close() {
    Set<Connection> open;
    synchronized (lock) {
      closed = true;
      idle.clear();
      open = Set.copyOf(all);
      all.clear();
    }
    open.forEach(this::discard);
  }
}
