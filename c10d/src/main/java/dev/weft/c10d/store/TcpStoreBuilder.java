package dev.weft.c10d.store;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.StoreException;
import dev.weft.c10d.StoreTimeoutException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** Describes a {@link TcpStore} and opens it. Not thread-safe. */
public final class TcpStoreBuilder {
  private final String host;
  private final int port;
  private boolean isServer;
  private boolean multiTenant;
  private boolean waitForWorkers = true;
  private int worldSize;
  private Duration timeout = TcpStore.DEFAULT_TIMEOUT;
  private @Nullable String bind = System.getenv(BindAddress.VARIABLE);
  private @Nullable String secret = System.getenv(SharedSecret.VARIABLE);

  TcpStoreBuilder(String host, int port) {
    if (host.isBlank()) {
      throw new IllegalArgumentException(
          "host is '" + host + "'; expected a host name or an address");
    }
    if (port < 0 || port > 65_535) {
      throw new IllegalArgumentException("port is " + port + "; expected 0 to 65535");
    }
    this.host = host;
    this.port = port;
  }

  /**
   * Says whether this store hosts the server.
   *
   * @param isServer true for exactly one of the users
   * @return this
   */
  public TcpStoreBuilder server(boolean isServer) {
    this.isServer = isServer;
    return this;
  }

  /**
   * Says how many users the store will have, the one with the server included.
   *
   * @param worldSize 1 or more
   * @return this
   */
  public TcpStoreBuilder worldSize(int worldSize) {
    Texts.checkWorldSize(worldSize);
    this.worldSize = worldSize;
    return this;
  }

  /**
   * Says whether users count themselves in and the one with the server waits for all; the default
   * if the world size is known.
   *
   * @param waitForWorkers whether to meet when opening
   * @return this
   */
  public TcpStoreBuilder waitForWorkers(boolean waitForWorkers) {
    this.waitForWorkers = waitForWorkers;
    return this;
  }

  /**
   * Sets the limit of opening the store and of waits that are given none. Five minutes by default.
   *
   * @param timeout zero or more
   * @return this
   */
  public TcpStoreBuilder timeout(Duration timeout) {
    this.timeout = Deadline.after(timeout).timeout();
    return this;
  }

  /**
   * Lets stores of this process that name the same port share one server.
   *
   * @param multiTenant whether to share
   * @return this
   */
  public TcpStoreBuilder multiTenant(boolean multiTenant) {
    this.multiTenant = multiTenant;
    return this;
  }

  /**
   * Sets what the server listens on, instead of the variable {@code WEFT_STORE_BIND}: an address, a
   * host name, a network interface, or a network such as {@code 10.0.0.0/8}. With neither it
   * listens on loopback if the host is a loopback address, and on all interfaces otherwise.
   *
   * @param bind the address
   * @return this
   */
  public TcpStoreBuilder bind(String bind) {
    this.bind = bind;
    return this;
  }

  /**
   * Sets a secret that the server and all clients share, instead of the variable {@code
   * WEFT_STORE_SECRET}: who does not know it is turned away. It is never sent. Without one the
   * connection is PyTorch's to the byte, and PyTorch's clients are welcome.
   *
   * @param secret the secret; an empty text for none
   * @return this
   */
  public TcpStoreBuilder secret(String secret) {
    this.secret = secret;
    return this;
  }

  /**
   * Opens the store: starts the server or connects to it, trying again until the timeout.
   *
   * @return the store
   * @throws StoreException if the server cannot listen, or does not share this client's secret
   * @throws StoreTimeoutException if no server answers, or the workers do not come in time
   */
  public TcpStore open() {
    return open(Deadline.after(timeout));
  }

  TcpStore open(Deadline deadline) {
    if (!isServer && port == 0) {
      throw new IllegalArgumentException("port is 0 for a client; expected the port of the server");
    }
    var shared = SharedSecret.of(secret);
    var server =
        isServer
            ? TcpStoreServer.start(BindAddress.choose(bind, host, port), multiTenant, shared)
            : null;
    int actual = server == null ? port : server.port();
    var client =
        new StoreClient(host, actual, server == null ? null : reachable(server.address()), shared);
    var store = new TcpStore(client, server, actual, timeout, true);
    boolean done = false;
    try {
      client.connect(deadline);
      if (waitForWorkers && worldSize > 0) {
        store.join(deadline);
        if (isServer) {
          store.awaitWorkers(worldSize, deadline);
        }
      }
      done = true;
      return store;
    } finally {
      if (!done) {
        store.close();
      }
    }
  }

  private static InetAddress reachable(InetSocketAddress bound) {
    InetAddress address = bound.getAddress();
    return address.isAnyLocalAddress() ? InetAddress.getLoopbackAddress() : address;
  }
}
