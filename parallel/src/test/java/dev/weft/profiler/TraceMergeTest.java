package dev.weft.profiler;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TraceMergeTest {
  @TempDir private Path folder;

  private final List<String> events = new ArrayList<>();

  private void slice(
      int rank, int lane, String category, String name, int start, int end, String args) {
    events.add(
        "{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%d,\"dur\":%d,\"args\":{%s}}"
            .formatted(name, category, rank, lane, start, end - start, args));
  }

  private void collective(int rank, int sequence, int launched, int end) {
    String args =
        "\"group\":\"g\",\"description\":\"tp\",\"ranks\":[0,1],\"seq\":%d,\"bytes\":1000,\"launched_us\":%d"
            .formatted(sequence, launched);
    slice(rank, 1000, "comm", "all_reduce", launched, end, args);
  }

  /** A rank whose trace begins at 1 s of its own clock, which is behind rank 0's by an offset. */
  private void write(int rank, long offsetMicros) throws IOException {
    String head =
        "{\"weft\":{\"version\":1,\"rank\":%d,\"world_size\":2,\"clock\":{\"start_ns\":1000000000,\"offset_ns\":%d,\"uncertainty_ns\":1000},\"windows\":[{\"start_us\":0,\"end_us\":1000}]},\"traceEvents\":["
            .formatted(rank, offsetMicros * 1000);
    Path file = folder.resolve("rank" + rank + ".trace.json.gz");
    try (OutputStream out = new GZIPOutputStream(Files.newOutputStream(file))) {
      out.write((head + String.join(",", events) + "]}").getBytes(UTF_8));
    }
    events.clear();
  }

  /**
   * On the joined clock: rank 0 launches at 100, 400, 700, rank 1 (whose trace begins 50 later) 100
   * later each; all end with rank 1's launch plus 50. Rank 0 waits from 150 on; rank 1 not at all.
   */
  private void twoRanks() throws IOException {
    for (int i = 0; i < 3; i++) {
      int t = 100 + 300 * i;
      collective(0, i + 1, t, t + 150);
      slice(0, 1, "op", "matmul", t - 50, t, "");
      slice(0, 1, "op", "linear", t - 60, t + 10, "");
      slice(0, 1, "comm_wait", "wait for all_reduce", t + 50, t + 150, "");
    }
    write(0, 0);
    for (int i = 0; i < 3; i++) {
      int t = 150 + 300 * i;
      collective(1, i + 1, t, t + 50);
    }
    write(1, 50);
  }

  @Test
  void clocksAreJoinedByTheOffsets() throws IOException {
    twoRanks();
    Path out = folder.resolve("all.json.gz");
    TraceSummary summary = TraceMerge.merge(List.of(folder), out);
    assertThat(summary.rankNumbers()).containsExactly(0, 1);
    JsonNode joined;
    try (var in = new GZIPInputStream(Files.newInputStream(out))) {
      joined = new ObjectMapper().readTree(in);
    }
    List<Double> ends = new ArrayList<>();
    for (JsonNode e : joined.get("traceEvents")) {
      if (e.get("cat").asText().equals("comm")) {
        ends.add(e.get("ts").asDouble() + e.get("dur").asDouble());
      }
    }
    assertThat(ends).containsExactly(250.0, 550.0, 850.0, 250.0, 550.0, 850.0);
    assertThat(joined.get("weft_ranks")).hasSize(2);
  }

  @Test
  void waitingAndTheStragglerAreFound() throws IOException {
    twoRanks();
    TraceSummary summary = TraceMerge.merge(List.of(folder), null);
    TraceSummary.RankTime zero = summary.rankTimes().get(0);
    TraceSummary.RankTime one = summary.rankTimes().get(1);
    assertThat(zero.waitingMs()).isCloseTo(0.3, within(1e-9));
    assertThat(zero.lateMs()).isZero();
    assertThat(one.lateMs()).isCloseTo(0.3, within(1e-9));
    assertThat(one.lastShare()).isEqualTo(1);
    assertThat(one.straggles()).isTrue();
    assertThat(zero.straggles()).isFalse();
    assertThat(summary.warnings())
        .contains(
            "Rank 1 is a straggler: the others waited 0.3 ms for it alone, 30 % of the recorded"
                + " time.");
  }

  @Test
  void waitingForSeveralCollectivesAtOnceCountsOnce() throws IOException {
    for (int i = 0; i < 3; i++) {
      collective(0, i + 1, 100 + i, 400 + 10 * i);
    }
    write(0, 0);
    for (int i = 0; i < 3; i++) {
      collective(1, i + 1, 390 + i, 400 + 10 * i);
    }
    write(1, 0);
    List<TraceSummary.RankTime> times = TraceMerge.merge(List.of(folder), null).rankTimes();
    assertThat(times.get(0).waitingMs()).isCloseTo(0.292, within(1e-9));
    assertThat(times.get(1).lateMs()).isCloseTo(0.292, within(1e-9));
  }

  @Test
  void aDeviceArrivesWhenItsStreamDoesNotWhenTheHostCalls() throws IOException {
    for (int rank = 0; rank < 2; rank++) {
      slice(
          rank,
          2000,
          "comm",
          "all_reduce",
          500,
          600,
          ("\"group\":\"g\",\"ranks\":[0,1],\"seq\":1,\"bytes\":1000,\"launched_us\":%d,"
                  + "\"reached_us\":%d")
              .formatted(100 + 200 * rank, 500 + 10 * rank));
      write(rank, 0);
    }
    List<TraceSummary.RankTime> times = TraceMerge.merge(List.of(folder), null).rankTimes();
    assertThat(times.get(0).waitingMs()).isCloseTo(0.01, within(1e-9));
    assertThat(times.get(1).lateMs()).isCloseTo(0.01, within(1e-9));
  }

  @Test
  void exposedIsWhatIsWaitedFor() throws IOException {
    twoRanks();
    TraceSummary.RankTime zero = TraceMerge.merge(List.of(folder), null).rankTimes().get(0);
    assertThat(zero.communicationMs()).isCloseTo(0.45, within(1e-9));
    assertThat(zero.exposedMs()).isCloseTo(0.3, within(1e-9));
    assertThat(zero.overlap()).isCloseTo(1 / 3.0, within(1e-9));
  }

  @Test
  void withDeviceLanesExposedIsWhatNoKernelCovers() throws IOException {
    collective(0, 1, 100, 200);
    slice(0, 2000, "kernel", "matmul", 50, 130, "");
    slice(0, 2000, "kernel", "matmul", 180, 300, "");
    slice(0, 1, "comm_wait", "wait for all_reduce", 100, 101, "");
    write(0, 0);
    TraceSummary.RankTime zero = TraceMerge.merge(List.of(folder), null).rankTimes().get(0);
    assertThat(zero.exposedMs()).isCloseTo(0.05, within(1e-9));
  }

  @Test
  void timeOfInnerCallsIsNotTheOuterOnes() throws IOException {
    twoRanks();
    List<TraceSummary.TopOp> top = TraceMerge.merge(List.of(folder), null).topOps(3);
    assertThat(top).extracting(TraceSummary.TopOp::name).contains("matmul", "linear");
    for (TraceSummary.TopOp op : top) {
      double expected =
          switch (op.name()) {
            case "matmul" -> 0.15;
            case "linear" -> 0.06;
            default -> 0.3;
          };
      assertThat(op.milliseconds()).as(op.name()).isCloseTo(expected, within(1e-9));
      assertThat(op.calls()).isEqualTo(3);
    }
  }

  @Test
  void aMissingRankIsSaid() throws IOException {
    collective(0, 1, 100, 200);
    write(0, 0);
    assertThat(TraceMerge.merge(List.of(folder), null).warnings())
        .contains("Only ranks [0] of 2 have a trace; waiting is not known for groups with others.");
  }

  @Test
  void whatIsNoTraceIsRefused() throws IOException {
    assertThatThrownBy(() -> TraceMerge.merge(List.of(folder), null))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("no traces in");
    Path other = Files.writeString(folder.resolve("x.json"), "{\"traceEvents\":[]}");
    assertThatThrownBy(() -> TraceMerge.merge(List.of(other), null))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("expected one of Weft's profiler");
  }
}
