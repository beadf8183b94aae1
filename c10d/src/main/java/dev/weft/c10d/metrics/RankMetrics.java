package dev.weft.c10d.metrics;

import dev.weft.c10d.debug.FlightRecorder;
import dev.weft.c10d.debug.RecordedCall;
import dev.weft.c10d.debug.Variables;
import dev.weft.c10d.debug.Watchdog;
import dev.weft.tensor.Device;
import dev.weft.tensor.cuda.CudaMemory;
import dev.weft.tensor.memory.HostMemory;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What a rank tells of itself: times of its collectives, its watchdog, memory, and the progress
 * that it reports. Thread-safe.
 */
public final class RankMetrics implements AutoCloseable {
  private static final double[] SECONDS = {
    1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1, 3, 10, 60
  };
  private static final String TIMES = "weft_collective_seconds";
  private static final String TIMES_HELP =
      "From a call to its end, waiting for other ranks included.";

  private final Metrics metrics;
  private final MetricsServer server;
  private final Map<String, Histogram> times = new ConcurrentHashMap<>();

  private RankMetrics(Metrics metrics, MetricsServer server) {
    this.metrics = metrics;
    this.server = server;
  }

  /**
   * Serves a rank's numbers if {@code WEFT_METRICS_PORT} is set: at that port plus the rank's
   * number on its machine ({@code LOCAL_RANK}, else its rank), on the address {@code
   * WEFT_METRICS_BIND} (the loopback one). Null if it is not set.
   *
   * @throws IllegalArgumentException if a variable is no number, or the port is above 65535
   * @throws dev.weft.c10d.DistributedException if the port cannot be listened on
   */
  public static @Nullable RankMetrics serve(
      Map<String, String> environment,
      int rank,
      FlightRecorder recorder,
      Supplier<Watchdog.State> watchdog,
      Supplier<@Nullable Device> device) {
    Variables variables = new Variables(environment);
    if (variables.text("WEFT_METRICS_PORT") == null) {
      return null;
    }
    long first = variables.number(0, "WEFT_METRICS_PORT");
    long port = first == 0 ? 0 : first + variables.number(rank, "LOCAL_RANK");
    if (port > 65_535) {
      throw new IllegalArgumentException(
          "environment variable WEFT_METRICS_PORT is "
              + first
              + ", which makes "
              + port
              + " for rank "
              + rank
              + "; expected at most 65535");
    }
    String host = variables.text("WEFT_METRICS_BIND");
    Metrics metrics = new Metrics(Map.of("rank", Integer.toString(rank)));
    describe(metrics, recorder, watchdog, device);
    return new RankMetrics(
        metrics, MetricsServer.start(host == null ? "127.0.0.1" : host, (int) port, metrics::text));
  }

  private static void describe(
      Metrics m,
      FlightRecorder recorder,
      Supplier<Watchdog.State> watchdog,
      Supplier<@Nullable Device> device) {
    for (Watchdog.State state : Watchdog.State.values()) {
      m.gauge(
              "weft_watchdog_state",
              "1 for the state that the watchdog is in.",
              Map.of("state", state.name().toLowerCase(Locale.ROOT)))
          .read(() -> watchdog.get() == state ? 1 : 0);
    }
    m.gauge("weft_active_calls", "Collectives and messages under way.", Map.of())
        .read(() -> recorder.calls().stream().filter(RecordedCall::isActive).count());
    m.gauge("weft_oldest_call_seconds", "How long the oldest of them has been, or 0.", Map.of())
        .read(
            () ->
                recorder.calls().stream()
                    .filter(RecordedCall::isActive)
                    .mapToDouble(c -> c.ageNanos() * 1e-9)
                    .max()
                    .orElse(0));
    memory(m, "host", "live", () -> HostMemory.stats().liveBytes());
    memory(m, "host", "peak", () -> HostMemory.stats().peakBytes());
    memory(m, "host", "pooled", () -> HostMemory.stats().pooledBytes());
    Runtime jvm = Runtime.getRuntime();
    memory(m, "heap", "live", () -> jvm.totalMemory() - jvm.freeMemory());
    memory(m, "cuda", "live", () -> cuda(device, CudaMemory.Stats::allocatedBytes));
    memory(m, "cuda", "peak", () -> cuda(device, CudaMemory.Stats::peakAllocatedBytes));
    memory(m, "cuda", "reserved", () -> cuda(device, CudaMemory.Stats::reservedBytes));
  }

  private static void memory(
      Metrics m, String where, String what, java.util.function.LongSupplier bytes) {
    m.gauge(
            "weft_memory_bytes",
            "Memory of tensors on the host or the rank's GPU (0 without one), and of Java's heap.",
            Map.of("kind", where + "_" + what))
        .read(bytes::getAsLong);
  }

  private static long cuda(
      Supplier<@Nullable Device> device, java.util.function.ToLongFunction<CudaMemory.Stats> part) {
    Device bound = device.get();
    return bound == null ? 0 : part.applyAsLong(CudaMemory.stats(bound.index()));
  }

  /** The numbers, to add one's own to. */
  public Metrics metrics() {
    return metrics;
  }

  /** The port that they are served at. */
  public int port() {
    return server.port();
  }

  /** Tells of a call that has ended. */
  public void ended(RecordedCall call, boolean well) {
    if (!well) {
      metrics
          .counter(
              "weft_failed_calls_total",
              "Calls that failed.",
              Map.of("operation", call.operation()))
          .add(1);
      return;
    }
    String key = call.operation() + " " + call.groupName();
    Histogram histogram = times.get(key);
    if (histogram == null) {
      histogram =
          times.computeIfAbsent(
              key,
              k ->
                  metrics.histogram(
                      TIMES,
                      TIMES_HELP,
                      Map.of("operation", call.operation(), "group", call.groupName()),
                      SECONDS));
    }
    histogram.observe(call.durationNanos() * 1e-9);
  }

  /** Tells how far training is. */
  public void progress(long step, double loss, double tokensPerSecond) {
    metrics
        .gauge("weft_train_step", "The step that was reported last.", Map.of())
        .set((double) step);
    metrics.gauge("weft_train_loss", "Its loss.", Map.of()).set(loss);
    metrics
        .gauge("weft_train_tokens_per_second", "Tokens a second, of the whole run.", Map.of())
        .set(tokensPerSecond);
  }

  @Override
  public void close() {
    server.close();
  }
}
