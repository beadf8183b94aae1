package dev.weft.c10d.metrics;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.weft.c10d.DistributedException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;

/**
 * Serves a text at {@code /metrics} over HTTP, on daemon threads. Thread-safe; to be closed. It has
 * no encryption and asks nobody who they are.
 */
public final class MetricsServer implements AutoCloseable {
  private final HttpServer server;
  private final ExecutorService threads;

  private MetricsServer(HttpServer server, ExecutorService threads) {
    this.server = server;
    this.threads = threads;
  }

  /**
   * Starts serving.
   *
   * @param host the address to listen on
   * @param port the port, 0 for a free one
   * @param text made anew for each request
   * @throws DistributedException if that cannot be listened on
   */
  public static MetricsServer start(String host, int port, Supplier<String> text) {
    HttpServer server;
    try {
      server = HttpServer.create(new InetSocketAddress(host, port), 0);
    } catch (IOException | IllegalArgumentException e) {
      throw new DistributedException(
          "metrics cannot be served at "
              + host
              + ":"
              + port
              + " (WEFT_METRICS_PORT, WEFT_METRICS_BIND): "
              + e,
          e);
    }
    ExecutorService threads =
        Executors.newSingleThreadExecutor(task -> daemon(task, "weft-metrics"));
    server.setExecutor(threads);
    server.createContext("/", exchange -> answer(exchange, text));
    begin(server);
    return new MetricsServer(server, threads);
  }

  private static Thread daemon(Runnable task, String name) {
    Thread thread = new Thread(task, name);
    thread.setDaemon(true);
    return thread;
  }

  /** The server's own thread is a daemon if the one that starts it is. */
  private static void begin(HttpServer server) {
    AtomicReference<Throwable> failure = new AtomicReference<>();
    Thread starter = daemon(server::start, "weft-metrics-start");
    starter.setUncaughtExceptionHandler((thread, e) -> failure.set(e));
    starter.start();
    try {
      starter.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (failure.get() != null) {
      throw new DistributedException("metrics cannot be served", failure.get());
    }
  }

  private static void answer(HttpExchange exchange, Supplier<String> text) throws IOException {
    try (exchange) {
      boolean known = exchange.getRequestURI().getPath().equals("/metrics");
      boolean get = exchange.getRequestMethod().equals("GET");
      int code = !known ? 404 : get ? 200 : 405;
      byte[] body =
          (code == 200 ? text.get() : known ? "expected GET\n" : "expected /metrics\n")
              .getBytes(UTF_8);
      exchange.getResponseHeaders().set("Content-Type", Metrics.CONTENT_TYPE);
      exchange.sendResponseHeaders(code, body.length);
      exchange.getResponseBody().write(body);
    }
  }

  /** The port that it listens on. */
  public int port() {
    return server.getAddress().getPort();
  }

  @Override
  public void close() {
    server.stop(0);
    threads.shutdownNow();
  }
}
