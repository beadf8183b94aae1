package dev.weft.c10d.debug;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.c10d.P2POp;
import dev.weft.c10d.RankContext;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What the flight recorder keeps, and what its dumps tell (P53). */
@Timeout(60)
class FlightRecorderTest {
  @TempDir Path folder;

  private FlightRecorderConfig config(int size) {
    return new FlightRecorderConfig(size, true, false, true, folder.resolve("trace_rank_") + "");
  }

  private LocalWorld world(int ranks, int size) {
    return LocalWorld.of(ranks).flightRecorder(config(size)).timeout(Duration.ofSeconds(20));
  }

  private static Tensor vector(int n) {
    return Tensor.of(new float[n], n);
  }

  private JsonNode dump(int rank) throws IOException {
    JsonNode dump = DumpFiles.read(folder, "").get(rank);
    assertThat(dump).as("dump of rank " + rank).isNotNull();
    return dump;
  }

  @Test
  void aDumpHasTheFieldsOfPyTorchs() throws IOException {
    world(2, 100)
        .run(
            rank -> {
              Work first = Distributed.allReduce(vector(4), ReduceOp.SUM);
              first.await();
              Work second =
                  Distributed.world()
                      .allGatherIntoTensor(vector(6), vector(3), CollectiveOptions.ASYNC);
              second.await();
              if (rank == 0) {
                Distributed.send(vector(2), 1, 0).await();
              } else {
                Distributed.recv(vector(2), 0, 0).await();
              }
              Distributed.barrier().await();
              Path unused = Distributed.dumpFlightRecorder();
            });
    JsonNode dump = dump(1);
    assertThat(dump.get("version").asText()).isEqualTo("2.10");
    assertThat(dump.get("pg_config").get("world").toString())
        .isEqualTo("{\"name\":\"world\",\"desc\":\"default_pg\",\"ranks\":\"[0, 1]\"}");
    assertThat(dump.get("pg_status").get("0").get("last_completed_collective").asLong())
        .isEqualTo(3);
    List<JsonNode> entries = FlightRecorderAnalyzer.entriesOf(dump);
    assertThat(entries.stream().map(e -> e.get("profiling_name").asText()))
        .containsExactly(
            "gloo:all_reduce", "gloo:_all_gather_base", "gloo:recv 1<-0", "gloo:barrier");
    JsonNode gather = entries.get(1);
    assertThat(gather.get("input_sizes").toString()).isEqualTo("[[3]]");
    assertThat(gather.get("output_sizes").toString()).isEqualTo("[[6]]");
    assertThat(gather.get("input_dtypes").toString()).isEqualTo("[\"Float\"]");
    assertThat(gather.get("collective_seq_id").asLong()).isEqualTo(2);
    assertThat(gather.get("state").asText()).isEqualTo("completed");
    assertThat(gather.get("retired").asBoolean()).isTrue();
    assertThat(gather.get("timeout_ms").asLong()).isEqualTo(20_000);
    assertThat(entries.get(2).get("p2p_seq_id").asLong()).isEqualTo(1);
    JsonNode frame = gather.get("frames").get(0);
    assertThat(frame.get("filename").asText()).isEqualTo("FlightRecorderTest.java");
    assertThat(frame.get("line").asInt()).isPositive();
    Analysis analysis = FlightRecorderAnalyzer.analyze(DumpFiles.read(folder, ""), false);
    assertThat(analysis.findings()).isEmpty();
    assertThat(analysis.isClean()).isTrue();
    assertThat(analysis.matchedCalls()).isEqualTo(8);
  }

  @Test
  void theRingKeepsTheNewestCalls() throws IOException {
    world(2, 5)
        .run(
            rank -> {
              for (int i = 0; i < 12; i++) {
                Distributed.barrier().await();
              }
              Path unused = Distributed.dumpFlightRecorder();
            });
    assertThat(
            FlightRecorderAnalyzer.entriesOf(dump(0)).stream()
                .map(e -> e.get("record_id").asLong()))
        .containsExactly(7L, 8L, 9L, 10L, 11L);
    assertThat(FlightRecorderAnalyzer.analyze(DumpFiles.read(folder, ""), false).isClean())
        .isTrue();
  }

  /** P53: rank 1 skips one all_reduce; the verdict names the rank, the operation and the line. */
  @Test
  void aSkippedCallIsNamed() throws IOException {
    CountDownLatch gaveUp = new CountDownLatch(2);
    world(3, 100)
        .timeout(Duration.ofMillis(500))
        .run(
            rank -> {
              Distributed.allReduce(vector(4), ReduceOp.SUM).await();
              if (rank != 1) {
                assertThatThrownBy(() -> Distributed.allReduce(vector(8), ReduceOp.SUM))
                    .isInstanceOf(OperationTimeoutException.class);
                gaveUp.countDown();
              } else {
                Path unused = Distributed.dumpFlightRecorder();
              }
              assertThat(gaveUp.await(30, TimeUnit.SECONDS)).isTrue();
            });
    Analysis analysis = FlightRecorderAnalyzer.analyze(DumpFiles.read(folder, ""), false);
    assertThat(analysis.isClean()).isFalse();
    assertThat(analysis.findings().get(0)).isEqualTo("look first at rank 1");
    assertThat(analysis.findings().get(1))
        .contains("ranks [0, 2] wait in all_reduce (collective 2)")
        .contains("FlightRecorderTest.java:")
        .contains("rank 1 never called it")
        .contains("the last call of rank 1 there was all_reduce (collective 1), completed");
    assertThat(analysis.findings().toString()).contains("rank 0 failed with:");
  }

  /** A rank that waits in another group is not the culprit; who keeps it there is. */
  @Test
  void aStuckRankIsNotBlamed() throws IOException {
    // All stay until those who wait have given up.
    CountDownLatch gaveUp = new CountDownLatch(2);
    world(3, 100)
        .timeout(Duration.ofMillis(500))
        .run(
            rank -> {
              var pair = Distributed.newGroup(1, 2);
              if (rank == 0) {
                assertThatThrownBy(Distributed::barrier).hasMessageContaining("did not arrive");
                gaveUp.countDown();
              } else if (rank == 1) {
                assertThatThrownBy(pair::barrier).hasMessageContaining("rank 2 did not arrive");
                gaveUp.countDown();
              }
              assertThat(gaveUp.await(30, TimeUnit.SECONDS)).isTrue();
              if (rank == 2) {
                Path unused = Distributed.dumpFlightRecorder();
              }
            });
    List<String> findings =
        FlightRecorderAnalyzer.analyze(DumpFiles.read(folder, ""), false).findings();
    assertThat(findings.get(0)).isEqualTo("look first at rank 2");
    assertThat(findings.toString()).contains("rank 1 is itself stuck in barrier");
  }

  @Test
  void batchesShareANumberAndMatch() throws IOException {
    world(2, 100)
        .run(
            rank -> {
              List<Work> works =
                  Distributed.batchIsendIrecv(
                      List.of(P2POp.isend(vector(3), 1 - rank), P2POp.irecv(vector(3), 1 - rank)));
              works.forEach(Work::await);
              Distributed.barrier().await();
              Path unused = Distributed.dumpFlightRecorder();
            });
    List<JsonNode> entries = FlightRecorderAnalyzer.entriesOf(dump(0));
    assertThat(entries.stream().map(e -> e.get("profiling_name").asText()))
        .containsExactly("gloo:send 0->1", "gloo:recv 0<-1", "gloo:coalesced", "gloo:barrier");
    assertThat(entries.stream().limit(3).map(e -> e.get("p2p_seq_id").asLong()))
        .containsExactly(1L, 1L, 1L);
    assertThat(FlightRecorderAnalyzer.analyze(DumpFiles.read(folder, ""), false).findings())
        .isEmpty();
  }

  @Test
  void aDumpCanBeJsonToo() throws IOException {
    world(2, 100)
        .run(
            rank -> {
              Distributed.barrier().await();
              String json = RankContext.current().flightRecorder().toJson();
              Path unused = Files.writeString(folder.resolve("dump" + rank + ".json"), json);
            });
    Analysis analysis = FlightRecorderAnalyzer.analyze(DumpFiles.read(folder, "dump"), false);
    assertThat(analysis.isClean()).isTrue();
    assertThat(analysis.matchedCalls()).isEqualTo(2);
  }

  /** P53: a missing dump is said, and the rest is looked at. */
  @Test
  void ranksMayBeMissing() throws IOException {
    world(2, 100)
        .run(
            rank -> {
              Distributed.barrier().await();
              if (rank == 0) {
                Path unused = Distributed.dumpFlightRecorder();
              }
            });
    SortedMap<Integer, JsonNode> dumps = DumpFiles.read(folder, "trace_rank_");
    assertThatThrownBy(() -> FlightRecorderAnalyzer.analyze(dumps, false))
        .hasMessageContaining("no dump of ranks [1]");
    assertThat(FlightRecorderAnalyzer.analyze(dumps, true).findings().get(0))
        .contains("there is no dump of rank 1");
    assertThatThrownBy(() -> DumpFiles.read(folder, "nope")).hasMessageContaining("has no dump");
  }

  @Test
  void theEnvironmentSaysHowMuchIsKept() {
    FlightRecorderConfig ours =
        FlightRecorderConfig.fromEnvironment(
            Map.of("WEFT_FR_BUFFER_SIZE", "7", "TORCH_FR_BUFFER_SIZE", "8"));
    assertThat(ours.bufferSize()).isEqualTo(7);
    assertThat(FlightRecorderConfig.fromEnvironment(Map.of()).bufferSize()).isEqualTo(2_000);
    assertThat(
            FlightRecorderConfig.fromEnvironment(Map.of("TORCH_INCLUDE_STACK_TRACE", "no"))
                .stacks())
        .isFalse();
    assertThatThrownBy(
            () -> FlightRecorderConfig.fromEnvironment(Map.of("TORCH_FR_BUFFER_SIZE", "many")))
        .hasMessage(
            "environment variable TORCH_FR_BUFFER_SIZE is 'many'; expected an integer of 0 or more");
  }
}
