package dev.weft.profiler;

import static dev.weft.profiler.Traces.end;
import static dev.weft.profiler.Traces.events;
import static dev.weft.profiler.Traces.slices;
import static dev.weft.profiler.Traces.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.RankContext;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.funcol.FunctionalCollectives;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Reductions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProfilerTest {
  private static final int FLOATS = 1024;

  @TempDir private Path folder;

  /** Six steps; each multiplies, sums over the ranks in two ways and runs a backward. */
  private void run(Schedule schedule) {
    LocalWorld.run(
        2,
        rank -> {
          try (Profiler profiler = Profiler.start(folder, schedule)) {
            for (int step = 0; step < 6; step++) {
              step();
              profiler.step();
            }
          }
        });
  }

  private static void step() {
    Tensor x = Tensor.of(new float[FLOATS], FLOATS);
    x.requiresGrad(true);
    Tensor y = Pointwise.mul(x, x);
    Tensor sum = FunctionalCollectives.allReduce(y.detach(), ReduceOp.SUM, Distributed.world());
    Tensor read = Pointwise.add(sum, 1);
    assertThat(read.numel()).isEqualTo(FLOATS);
    Reductions.sum(y).backward();
    Work work = Distributed.world().allReduce(y.detach().copy(), ReduceOp.MAX);
    assertThat(work.isSuccess()).isTrue();
  }

  @Test
  void onlyTheActiveStepsAreKept() {
    run(Schedule.once(2, 1, 2));
    for (int rank = 0; rank < 2; rank++) {
      List<ObjectNode> events = events(folder.resolve("rank" + rank + ".trace.json.gz"));
      assertThat(slices(events, "step"))
          .extracting(e -> e.get("name").asText())
          .containsExactly("step 3", "step 4");
      assertThat(slices(events, "comm")).hasSize(4);
      assertThat(slices(events, "op").stream().filter(e -> e.get("name").asText().equals("mul")))
          .isNotEmpty()
          .anyMatch(e -> e.get("args").get("tensors").get(0).asText().equals("float32[1024]"));
      assertThat(slices(events, "op")).anyMatch(e -> e.get("args").has("backward"));
    }
  }

  @Test
  void collectivesTellWhatTheyMove() {
    run(Schedule.once(0, 1, 1));
    List<ObjectNode> all = slices(events(folder.resolve("rank1.trace.json.gz")), "comm");
    ObjectNode functional = all.get(0);
    assertThat(functional.get("name").asText()).isEqualTo("all_reduce");
    var args = functional.get("args");
    assertThat(args.get("ranks").toString()).isEqualTo("[0,1]");
    assertThat(args.get("bytes").asLong()).isEqualTo(4 * FLOATS);
    assertThat(args.get("async").asBoolean()).isTrue();
    assertThat(args.get("backend").asText()).isEqualTo("host");
    assertThat(args.get("algorithm").asText()).isNotEmpty();
    // Two ranks: each link carries the size once.
    assertThat(args.get("bus_bandwidth_gb_per_s").asDouble())
        .isEqualTo(args.get("algorithm_bandwidth_gb_per_s").asDouble());
    assertThat(all.get(1).get("args").get("async").asBoolean()).isFalse();
    assertThat(all.get(1).get("args").get("seq").asLong()).isEqualTo(args.get("seq").asLong() + 1);
  }

  @Test
  void arrowsGoFromLaunchOverTheCollectiveToItsWait() {
    run(Schedule.once(0, 0, 1));
    List<ObjectNode> events = events(folder.resolve("rank0.trace.json.gz"));
    Map<Long, List<ObjectNode>> flows =
        events.stream()
            .filter(e -> e.get("name").asText().equals("flow"))
            .collect(Collectors.groupingBy(e -> e.get("id").asLong()));
    assertThat(flows).hasSize(2);
    assertThat(flows.values().stream().map(f -> kinds(f)))
        .containsExactlyInAnyOrder(List.of("s", "t", "f"), List.of("s", "f"));
    for (ObjectNode point : flows.values().stream().flatMap(List::stream).toList()) {
      assertThat(events.stream().filter(e -> e.get("ph").asText().equals("X")))
          .as("a slice under %s", point)
          .anyMatch(
              e ->
                  e.get("tid").equals(point.get("tid"))
                      && start(e) <= start(point)
                      && start(point) <= end(e));
    }
    assertThat(slices(events, "comm_wait"))
        .singleElement()
        .matches(e -> e.get("name").asText().equals("wait for all_reduce"));
  }

  private static List<String> kinds(List<ObjectNode> flow) {
    return flow.stream().map(e -> e.get("ph").asText()).toList();
  }

  @Test
  void slicesOfALaneNestOrFollowEachOther() {
    run(new Schedule(0, 1, 2, 2));
    List<ObjectNode> slices =
        events(folder.resolve("rank0.trace.json.gz")).stream()
            .filter(e -> e.get("ph").asText().equals("X"))
            .sorted(
                Comparator.comparingDouble(Traces::start)
                    .thenComparing(Comparator.comparingDouble(Traces::end).reversed()))
            .toList();
    assertThat(slices.stream().map(e -> e.get("tid").asInt()).distinct()).hasSize(2);
    for (int lane : slices.stream().map(e -> e.get("tid").asInt()).distinct().toList()) {
      Deque<ObjectNode> open = new ArrayDeque<>();
      for (ObjectNode slice : slices) {
        if (slice.get("tid").asInt() != lane) {
          continue;
        }
        while (!open.isEmpty() && end(open.peek()) <= start(slice) + 1e-6) {
          open.pop();
        }
        assertThat(open.isEmpty() || end(slice) <= end(open.peek()) + 1e-6)
            .as("%s inside %s", slice, open.peek())
            .isTrue();
        open.push(slice);
      }
    }
  }

  /** Ranks that are threads have the same clock, so the true offset is 0. */
  @Test
  void exchangesFindTheOffsetWithinTheStatedUncertainty() {
    LocalWorld.run(
        3,
        rank -> {
          for (int i = 0; i < 3; i++) {
            ClockOffset offset = ClockOffset.exchange(RankContext.current());
            assertThat(Math.abs(offset.nanos())).isLessThanOrEqualTo(offset.uncertaintyNanos());
            assertThat(offset.uncertaintyNanos() > 0).isEqualTo(rank > 0);
          }
        });
  }

  @Test
  void theClockIsInTheTracesHead() {
    run(Schedule.once(0, 0, 1));
    var clock = TraceFile.open(folder.resolve("rank1.trace.json.gz")).head().get("clock");
    assertThat(Math.abs(clock.get("offset_ns").asLong()))
        .isLessThanOrEqualTo(clock.get("uncertainty_ns").asLong());
    assertThat(clock.get("start_ns").asLong()).isLessThan(System.nanoTime());
  }

  @Test
  void aRunWithoutRanksIsRecordedToo() {
    try (Profiler profiler = Profiler.start(folder, Schedule.once(0, 0, 2))) {
      try (Profiler.Range range = profiler.range("my piece")) {
        assertThat(Pointwise.add(Tensor.of(new float[] {1}, 1), 1).item()).isEqualTo(2);
      }
      assertThat(Files.exists(profiler.file())).isFalse();
    }
    List<ObjectNode> events = events(folder.resolve("rank0.trace.json.gz"));
    assertThat(slices(events, "range"))
        .singleElement()
        .matches(e -> e.get("name").asText().equals("my piece"));
    assertThat(slices(events, "op")).isNotEmpty();
  }

  @Test
  void afterClosingItCannotStep() {
    Profiler profiler = Profiler.start(folder, Schedule.once(1, 0, 1));
    profiler.close();
    assertThatThrownBy(profiler::step).isInstanceOf(IllegalStateException.class);
    assertThat(profiler.written()).isEmpty();
  }
}
