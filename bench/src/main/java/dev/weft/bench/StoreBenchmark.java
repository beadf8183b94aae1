package dev.weft.bench;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.weft.c10d.store.TcpStore;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Many clients of one store: connecting, a set, a get of the next one's value, a barrier of add and
 * wait. The server is a process of its own; the clients are threads of this one, each with a
 * connection. A phase begins at a common gate and ends when the last thread is through.
 */
public final class StoreBenchmark {
  private static final Duration TIMEOUT = Duration.ofMinutes(2);
  private static final int ROUND_TRIPS = 2_000;
  private static final long STACK = 512 << 10;
  private static final List<String> PHASES =
      List.of("gate_only", "connect", "set", "get_next", "barrier");

  private final Rows rows;
  private final int rounds;
  private final int connecting;

  /**
   * A benchmark.
   *
   * @param rounds of which the best and the median count
   * @param connecting how many clients connect at once, at most
   */
  public StoreBenchmark(Rows rows, int rounds, int connecting) {
    this.rows = rows;
    this.rounds = rounds;
    this.connecting = connecting;
  }

  /** The server's process: prints its port and serves until its input ends. */
  public static void main(String[] args) throws IOException {
    PrintStream answer = System.out;
    System.setOut(System.err); // where a logger may write
    try (TcpStore store =
        TcpStore.at("127.0.0.1", 0).server(true).waitForWorkers(false).timeout(TIMEOUT).open()) {
      answer.println(store.port());
      while (System.in.read() >= 0) {
        // Nobody writes: the end is what is waited for.
      }
    }
  }

  /** Measures with each number of clients, against one server. */
  public void run(List<Integer> clients) {
    Process server = startServer();
    try {
      int port = port(server);
      roundTrips(port);
      for (int n : clients) {
        measure(port, n);
      }
    } finally {
      server.destroy();
    }
  }

  private static Process startServer() {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    try {
      return new ProcessBuilder(
              java, "-cp", System.getProperty("java.class.path"), StoreBenchmark.class.getName())
          .redirectError(ProcessBuilder.Redirect.INHERIT)
          .start();
    } catch (IOException e) {
      throw new UncheckedIOException("the store's server cannot be started: " + e, e);
    }
  }

  private static int port(Process server) {
    try {
      String line =
          new BufferedReader(new InputStreamReader(server.getInputStream(), UTF_8)).readLine();
      if (line == null) {
        throw new IllegalStateException("the store's server ended before it said its port");
      }
      return Integer.parseInt(line);
    } catch (IOException e) {
      throw new UncheckedIOException("the store's server did not say its port: " + e, e);
    }
  }

  private static TcpStore connect(int port) {
    return TcpStore.at("127.0.0.1", port).waitForWorkers(false).timeout(TIMEOUT).open();
  }

  private void roundTrips(int port) {
    try (TcpStore store = connect(port)) {
      byte[] value = "y".getBytes(UTF_8);
      long start = System.nanoTime();
      for (int i = 0; i < ROUND_TRIPS; i++) {
        store.set("x", value);
        byte[] unused = store.get("x");
      }
      double micros = (System.nanoTime() - start) / 1e3 / (2 * ROUND_TRIPS);
      rows.addValue("store_roundtrip", micros, "us", "n", 1, "op", "set/get");
    }
  }

  private void measure(int port, int n) {
    Map<String, double[]> millis = new LinkedHashMap<>();
    PHASES.forEach(p -> millis.put(p, new double[rounds]));
    for (int r = 0; r < rounds; r++) {
      new Round(port, n, n + "." + r).run(millis, r);
    }
    millis.forEach(
        (phase, values) -> {
          Arrays.sort(values);
          print(phase, n, values[0], "best");
          print(phase, n, values[values.length / 2], "median");
        });
  }

  private void print(String phase, int n, double millis, String stat) {
    if (phase.equals("connect")) {
      rows.addValue(
          "store_connect", millis, "ms", "n", n, "stat", stat, "connect_concurrency", connecting);
    } else {
      rows.addValue("store_" + phase, millis, "ms", "n", n, "stat", stat);
    }
  }

  private final class Round {
    private final int port;
    private final int n;
    private final String prefix;
    private final Semaphore slots = new Semaphore(connecting);
    private final CyclicBarrier gate;
    private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();

    Round(int port, int n, String prefix) {
      this.port = port;
      this.n = n;
      this.prefix = prefix;
      this.gate = new CyclicBarrier(n + 1);
    }

    void run(Map<String, double[]> millis, int round) {
      Thread[] threads = new Thread[n];
      for (int i = 0; i < n; i++) {
        int me = i;
        threads[i] = new Thread(null, () -> client(me), "store-client-" + i, STACK);
        threads[i].setDaemon(true);
        threads[i].start();
      }
      for (String phase : PHASES) {
        while (gate.getNumberWaiting() < n) {
          Thread.onSpinWait(); // so that the gate, not the start of threads, is measured
        }
        long start = System.nanoTime();
        pass();
        pass();
        double[] values = millis.get(phase);
        if (values != null) {
          values[round] = (System.nanoTime() - start) / 1e6;
        }
      }
      pass();
      Throwable cause = failure.get();
      if (cause != null) {
        throw new IllegalStateException("a client of the store failed: " + cause, cause);
      }
    }

    private void pass() {
      try {
        int unused = gate.await();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("the benchmark was interrupted", e);
      } catch (BrokenBarrierException e) {
        throw new IllegalStateException("the benchmark was interrupted elsewhere", e);
      }
    }

    private void client(int me) {
      TcpStore store = null;
      for (String phase : PHASES) {
        pass();
        try {
          store = step(phase, store, me);
        } catch (RuntimeException | Error | InterruptedException e) {
          boolean unused = failure.compareAndSet(null, e); // the gates go on; said at the end
        }
        pass();
      }
      if (store != null) {
        store.close();
      }
      pass();
    }

    private @Nullable TcpStore step(String phase, @Nullable TcpStore store, int me)
        throws InterruptedException {
      if (phase.equals("connect")) {
        slots.acquire();
        try {
          return connect(port);
        } finally {
          slots.release();
        }
      }
      if (phase.equals("gate_only") || store == null) {
        return store;
      }
      switch (phase) {
        case "set" -> store.set(key(me), value(me));
        case "get_next" -> {
          int next = (me + 1) % n;
          if (!Arrays.equals(store.get(key(next)), value(next))) {
            throw new IllegalStateException("the store has a wrong value under " + key(next));
          }
        }
        default -> {
          if (store.add(prefix + "/count", 1) == n) {
            store.set(prefix + "/go", value(0));
          }
          store.waitFor(List.of(prefix + "/go"));
        }
      }
      return store;
    }

    private String key(int i) {
      return "r" + prefix + "/k" + i;
    }

    private byte[] value(int i) {
      return ("v" + i).getBytes(UTF_8);
    }
  }
}
