package dev.weft.c10d.faults;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;

/**
 * Passes connections on to another address, and does to them what a network may do. Thread-safe.
 */
final class Proxy implements AutoCloseable {
  /** What happens to the bytes. */
  enum Fault {
    NONE,
    /** Connections end. */
    DISCONNECT,
    /** A bit of what passes is turned round, once. */
    CORRUPT,
    /** What passes is held back for a moment, once. */
    DELAY,
    /** Nothing passes any more. */
    STALL
  }

  private static final long DELAY_MILLIS = 700;

  private final ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
  private final InetAddress host;
  private final int port;
  private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
  private final CountDownLatch closed = new CountDownLatch(1);
  private volatile Fault fault = Fault.NONE;

  Proxy(InetAddress host, int port) throws IOException {
    this.host = host;
    this.port = port;
    daemon(this::accept, "proxy-accept");
  }

  int port() {
    return server.getLocalPort();
  }

  /** From now on. */
  void inject(Fault f) {
    fault = f;
    if (f == Fault.DISCONNECT) {
      sockets.forEach(Proxy::end);
    }
  }

  private void accept() {
    try {
      while (true) {
        Socket in = server.accept();
        if (fault == Fault.DISCONNECT) {
          end(in);
          continue;
        }
        Socket out = new Socket(host, port);
        in.setTcpNoDelay(true);
        out.setTcpNoDelay(true);
        sockets.add(in);
        sockets.add(out);
        daemon(() -> pass(in, out), "proxy-there");
        daemon(() -> pass(out, in), "proxy-back");
      }
    } catch (IOException e) {
      // Closed, or the other side is gone: whoever connects here sees that.
      end(server);
    }
  }

  private void pass(Socket from, Socket to) {
    byte[] bytes = new byte[1 << 16];
    try {
      InputStream in = from.getInputStream();
      OutputStream out = to.getOutputStream();
      for (int n = in.read(bytes); n >= 0; n = in.read(bytes)) {
        switch (fault) {
          case CORRUPT -> {
            fault = Fault.NONE;
            bytes[n / 2] ^= 0x10;
          }
          case DELAY -> {
            fault = Fault.NONE;
            Thread.sleep(DELAY_MILLIS);
          }
          case STALL -> closed.await();
          default -> {}
        }
        out.write(bytes, 0, n);
      }
      to.shutdownOutput();
    } catch (IOException e) {
      end(from);
      end(to);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static void end(java.io.Closeable socket) {
    try {
      socket.close();
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  private static void daemon(Runnable body, String name) {
    Thread t = new Thread(body, name);
    t.setDaemon(true);
    t.start();
  }

  @Override
  public void close() {
    closed.countDown();
    end(server);
    sockets.forEach(Proxy::end);
  }
}
