package dev.weft.profiler;

import static dev.weft.profiler.Schedule.Phase.ACTIVE;
import static dev.weft.profiler.Schedule.Phase.DONE;
import static dev.weft.profiler.Schedule.Phase.WAIT;
import static dev.weft.profiler.Schedule.Phase.WARMUP;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class ScheduleTest {
  @Test
  void phasesFollowEachOtherAndRepeat() {
    Schedule schedule = new Schedule(1, 1, 2, 2);
    assertThat(LongStream.range(0, 10).mapToObj(schedule::phase))
        .containsExactly(WAIT, WARMUP, ACTIVE, ACTIVE, WAIT, WARMUP, ACTIVE, ACTIVE, DONE, DONE);
  }

  @Test
  void withoutAnEndItGoesOn() {
    assertThat(new Schedule(0, 0, 1, 0).phase(1_000_000_007L)).isEqualTo(ACTIVE);
  }

  @Test
  void numbersAreChecked() {
    assertThatThrownBy(() -> new Schedule(1, 1, 0, 1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "schedule skip=1, warmup=1, active=0, repeat=1; expected active >= 1 and no number"
                + " below 0");
  }
}
