package dev.weft.c10d.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.InitOptions;
import dev.weft.c10d.RankContext;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.RunStatus;
import dev.weft.c10d.Work;
import dev.weft.c10d.World;
import dev.weft.tensor.Tensor;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;

class MetricsTest {
  /** Lines as in the format's description, values and escapes included. */
  @Test
  void theTextIsPrometheus() {
    Metrics m = new Metrics(Map.of("rank", "3"));
    m.counter("b_total", "Of things.", Map.of("path", "a\\b\"c\nd")).add(2.5);
    m.gauge("a", "One\nline \\.", Map.of()).set(Double.NaN);
    Histogram h = m.histogram("c", "Times.", Map.of(), 0.1, 1);
    h.observe(0.1);
    h.observe(0.5);
    h.observe(7);
    assertThat(m.text())
        .isEqualTo(
            """
            # HELP a One\\nline \\\\.
            # TYPE a gauge
            a{rank="3"} NaN
            # HELP b_total Of things.
            # TYPE b_total counter
            b_total{rank="3",path="a\\\\b\\"c\\nd"} 2.5
            # HELP c Times.
            # TYPE c histogram
            c_bucket{rank="3",le="0.1"} 1
            c_bucket{rank="3",le="1"} 2
            c_bucket{rank="3",le="+Inf"} 3
            c_sum{rank="3"} 7.6
            c_count{rank="3"} 3
            """);
  }

  @Test
  void aNameHasOneKindAndAnotherIsRefused() {
    Metrics m = new Metrics(Map.of());
    assertThat(m.counter("x", "", Map.of())).isSameAs(m.counter("x", "", Map.of()));
    assertThatThrownBy(() -> m.gauge("x", "", Map.of()))
        .hasMessage("metric 'x' is a COUNTER already; expected the same kind");
    assertThatThrownBy(() -> m.gauge("1x", "", Map.of())).hasMessageStartingWith("name '1x'");
    assertThatThrownBy(() -> m.counter("x", "", Map.of()).add(-1))
        .hasMessage("amount is -1.0; expected 0 or more");
    assertThatThrownBy(() -> m.histogram("h", "", Map.of(), 1, 1))
        .hasMessageContaining("expected each above the one before");
  }

  private static HttpResponse<String> get(int port, String path) throws Exception {
    return HttpClient.newHttpClient()
        .send(
            HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path)).build(),
            HttpResponse.BodyHandlers.ofString());
  }

  @Test
  void aRankServesWhatItDoes() throws Exception {
    int port;
    try (World world =
        Distributed.init(InitOptions.DEFAULT.withEnvironment(Map.of("WEFT_METRICS_PORT", "0")))) {
      port = Objects.requireNonNull(RankContext.current().metrics()).port();
      Work unused = Distributed.allReduce(Tensor.of(new float[] {1}, 1), ReduceOp.SUM);
      RunStatus.report(12, 3.5, 1e4);
      HttpResponse<String> answer = get(port, "/metrics");
      assertThat(answer.headers().firstValue("Content-Type")).hasValue(Metrics.CONTENT_TYPE);
      assertThat(answer.body())
          .contains(
              "weft_train_step{rank=\"0\"} 12\n",
              "weft_train_loss{rank=\"0\"} 3.5\n",
              "weft_train_tokens_per_second{rank=\"0\"} 10000\n",
              "weft_watchdog_state{rank=\"0\",state=\"off\"} 1\n",
              "weft_active_calls{rank=\"0\"} 0\n",
              "weft_memory_bytes{rank=\"0\",kind=\"host_live\"} ")
          .containsPattern("weft_collective_seconds_count\\{rank=\"0\",[^}]*all_reduce[^}]*} 1\n");
      assertThat(get(port, "/").statusCode()).isEqualTo(404);
    }
    assertThatThrownBy(() -> get(port, "/metrics")).isInstanceOf(java.net.ConnectException.class);
  }

  @Test
  void portsAreChecked() {
    for (String port : new String[] {"many", "65536"}) {
      assertThatThrownBy(
              () ->
                  Distributed.init(
                      InitOptions.DEFAULT.withEnvironment(Map.of("WEFT_METRICS_PORT", port))))
          .hasMessageContaining("WEFT_METRICS_PORT is ")
          .hasMessageContaining(port);
    }
    assertThat(Distributed.isInitialized()).isFalse();
  }
}
