package dev.weft.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

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
  @EnumSource
  void eightRanksGoThroughEverything(CollectiveRuns.Transport transport) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    CollectiveRuns.stress(transport, 8, 2, new PrintStream(bytes, true, StandardCharsets.UTF_8));
    assertThat(bytes.toString(StandardCharsets.UTF_8))
        .contains("\"stress\"")
        .contains("\"n\":8")
        .contains("\"collectives\"");
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
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    CollectiveRuns.run(
        transport, ranks, sizes, 0.2, new PrintStream(bytes, true, StandardCharsets.UTF_8));
    return bytes.toString(StandardCharsets.UTF_8);
  }
}
