package dev.weft.c10d.host;

import java.io.IOException;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.List;

/** The daemon thread that reads, and writes what is left over, for all connections of a rank. */
final class IoLoop implements AutoCloseable {
  private final Selector selector;
  private final Thread thread;
  private volatile boolean closed;

  IoLoop(int rank, List<TcpConnection> connections) throws IOException {
    selector = Selector.open();
    for (TcpConnection c : connections) {
      c.channel().configureBlocking(false);
      c.registered(c.channel().register(selector, SelectionKey.OP_READ, c));
    }
    thread = new Thread(this::run, "weft-io-" + rank);
    thread.setDaemon(true);
    thread.start();
  }

  private void run() {
    try {
      while (!closed) {
        int unused = selector.select(IoLoop::ready);
      }
    } catch (IOException | RuntimeException | Error e) {
      if (closed) {
        return; // with the selector
      }
      for (SelectionKey key : selector.keys()) {
        ((TcpConnection) key.attachment()).end(e);
      }
    }
  }

  private static void ready(SelectionKey key) {
    TcpConnection connection = (TcpConnection) key.attachment();
    try {
      if (key.isReadable()) {
        connection.readable();
      }
      if (key.isValid() && key.isWritable()) {
        connection.writable();
      }
    } catch (CancelledKeyException e) {
      connection.end(null); // closed by another thread, which has told why
    } catch (IOException | RuntimeException | Error e) {
      connection.end(e);
    }
  }

  @Override
  public void close() {
    closed = true;
    selector.wakeup();
    boolean interrupted = false;
    try {
      thread.join(2_000);
    } catch (InterruptedException e) {
      interrupted = true;
    }
    try {
      selector.close();
    } catch (IOException e) {
      throw new java.io.UncheckedIOException("closing a selector failed", e);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
