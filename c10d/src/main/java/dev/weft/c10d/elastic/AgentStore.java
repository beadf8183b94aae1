package dev.weft.c10d.elastic;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.StoreException;
import dev.weft.c10d.store.TcpStore;
import java.net.BindException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The store through which the agents of a run meet. On the machine that the endpoint names the
 * first agent serves it; all others connect.
 *
 * @param store the store
 * @param hosted whether this process serves it
 * @param address where the other agents reach servers of this process
 */
record AgentStore(TcpStore store, boolean hosted, String address) implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(AgentStore.class);

  /** Serves the endpoint if it can, else connects to it. */
  static AgentStore open(String host, int port, Duration timeout) {
    boolean local = isLocal(host);
    if (local) {
      try {
        var store =
            TcpStore.at(host, port).server(true).waitForWorkers(false).timeout(timeout).open();
        // Others came by this name, and so can come by it again.
        return new AgentStore(store, true, host);
      } catch (StoreException e) {
        if (port == 0 || !isInUse(e)) {
          throw e;
        }
        log.debug("another agent serves {}:{}", host, port, e);
      }
    }
    var store = TcpStore.at(host, port).waitForWorkers(false).timeout(timeout).open();
    // On the store's machine the others come by the endpoint's name, as to the store; elsewhere by
    // the address from which this machine reached it.
    String own = local ? host : store.localAddress().map(InetAddress::getHostAddress).orElse(host);
    return new AgentStore(store, false, own);
  }

  /** Whether the endpoint is on this machine, as far as that can be told. */
  private static boolean isLocal(String host) {
    try {
      for (InetAddress address : InetAddress.getAllByName(host)) {
        if (address.isLoopbackAddress() || NetworkInterface.getByInetAddress(address) != null) {
          return true;
        }
      }
      return false;
    } catch (UnknownHostException | SocketException e) {
      log.debug("{} is not known to be this machine", host, e);
      return false; // connecting reports it, with the name
    }
  }

  private static boolean isInUse(Throwable failure) {
    return failure.getCause() instanceof BindException;
  }

  /** A store for the ranks of one attempt, served by this process. */
  TcpStore serveRanks(int port) {
    return TcpStore.at(address, port).server(true).waitForWorkers(false).open();
  }

  /** A view for calls that should not take long. */
  dev.weft.c10d.store.Store brief(Duration timeout) {
    return store.withTimeout(Deadline.after(timeout).timeout());
  }

  @Override
  public void close() {
    store.close();
  }
}
