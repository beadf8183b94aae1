package dev.weft.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.host.HostOptions;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@Timeout(300)
class CollectiveBenchmarkTest {
  @ParameterizedTest
  @EnumSource
  void everyOperationHasItsRows(CollectiveRuns.Transport transport) {
    String out = run(transport, 2, List.of(1024L));
    for (CollectiveCase.Operation operation : CollectiveCase.Operation.values()) {
      assertThat(out.lines().filter(l -> l.contains("\"" + operation.label() + "\"")))
          .as("%s", operation)
          .hasSize(2)
          .allMatch(l -> l.contains("\"impl\":\"" + transport.impl() + "\""));
    }
  }

  /** More ranks than most machines that build this have processors: none may starve. */
  @ParameterizedTest
  @EnumSource(names = {"LOCAL", "SHM"})
  void eightRanksGoThroughEverything(CollectiveRuns.Transport transport) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    CollectiveRuns.stress(transport, 8, 2, new PrintStream(bytes, true, StandardCharsets.UTF_8));
    assertThat(bytes.toString(StandardCharsets.UTF_8))
        .contains("\"stress\"")
        .contains("\"n\":8")
        .contains("\"collectives\"");
  }

  @Test
  void namedAlgorithmsAreInTheRows() {
    HostOptions ring = HostOptions.DEFAULT.withAlgorithm("all_reduce", "ring");
    assertThat(
            run(CollectiveRuns.Transport.TCP, 2, List.of(1024L), ring)
                .lines()
                .filter(l -> l.startsWith("{")))
        .isNotEmpty()
        .allMatch(l -> l.contains("\"algorithm\":\"pairwise messages (all_reduce=ring)\""));
    assertThatThrownBy(() -> run(CollectiveRuns.Transport.SHM, 3, List.of(1200L), ring))
        .hasMessageContaining("all_reduce=ring for transport SHM")
        .hasMessageContaining("expected TCP");
  }

  @Test
  void pingPongIsForTwo() {
    assertThat(run(CollectiveRuns.Transport.LOCAL, 3, List.of(1200L)))
        .contains("\"all_to_all\"")
        .doesNotContain("pingpong");
  }

  @Test
  void sizesThatDoNotDivideAreRefused() {
    assertThatThrownBy(() -> run(CollectiveRuns.Transport.LOCAL, 3, List.of(1024L)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("size 1024; expected a multiple of 12");
  }

  private static String run(CollectiveRuns.Transport transport, int ranks, List<Long> sizes) {
    return run(transport, ranks, sizes, HostOptions.DEFAULT);
  }

  private static String run(
      CollectiveRuns.Transport transport, int ranks, List<Long> sizes, HostOptions algorithms) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PrintStream out = new PrintStream(bytes, true, StandardCharsets.UTF_8);
    CollectiveRuns.run(transport, ranks, sizes, 0.2, algorithms, out);
    return bytes.toString(StandardCharsets.UTF_8);
  }
}
