package dev.weft.bench;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.parallel.pipeline.Schedule;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PipelineBubbleTest {
  /**
   * The idle time can only be more than that of theory, but for the clock's and a core's jitter.
   */
  @ParameterizedTest
  @CsvSource({"GPIPE,1", "ONE_F_ONE_B,1", "INTERLEAVED,2", "ZB_H1,1"})
  void aBubbleIsMeasuredNextToTheory(Schedule schedule, int perRank) {
    ByteArrayOutputStream drawn = new ByteArrayOutputStream();
    Rows rows = new Rows(null);
    double measured =
        new PipelineBubble(
                rows, Duration.ofMillis(10), new PrintStream(drawn, true, StandardCharsets.UTF_8))
            .measure(schedule, 2, perRank, 4);
    double theory = schedule.timeline(2, perRank, 4).bubble();
    assertThat(rows.all())
        .extracting(r -> r.params().get("source"))
        .containsExactly("theory", "measured");
    assertThat(measured).isBetween(theory / 2, 1.0);
    assertThat(drawn.toString(StandardCharsets.UTF_8)).contains("rank 0   F0").contains("rank 1");
  }
}
