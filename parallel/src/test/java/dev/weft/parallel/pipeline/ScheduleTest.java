package dev.weft.parallel.pipeline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.offset;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ScheduleTest {
  @Test
  void oneForwardOneBackwardAlternatesAfterAWarmUp() {
    assertThat(Schedule.ONE_F_ONE_B.actions(0, 3, 1, 4))
        .hasToString("[0F0, 0F1, 0F2, 0B0, 0F3, 0B1, 0B2, 0B3]");
    assertThat(Schedule.ONE_F_ONE_B.actions(2, 3, 1, 4))
        .hasToString("[2F0, 2B0, 2F1, 2B1, 2F2, 2B2, 2F3, 2B3]");
  }

  @Test
  void theTimelineIsDrawn() {
    assertThat(Schedule.ONE_F_ONE_B.timeline(2, 1, 2))
        .hasToString(
            """
            rank 0   F0  F1  .   .   B0      .   B1
            rank 1   .   F0  B0      F1  B1      .   .
            """);
  }

  /** The bubble is (p - 1) / (m + p - 1), and a v-th of p - 1 where ranks have v stages. */
  @Test
  void bubblesAreThoseOfTheory() {
    for (int p = 1; p <= 4; p++) {
      for (int m = p; m <= 4 * p; m += p) {
        double theory = (p - 1.0) / (m + p - 1);
        assertThat(Schedule.GPIPE.timeline(p, 1, m).bubble()).isCloseTo(theory, offset(1e-12));
        assertThat(Schedule.ONE_F_ONE_B.timeline(p, 1, m).bubble())
            .isCloseTo(theory, offset(1e-12));
        for (int v = 2; v <= 3; v++) {
          assertThat(Schedule.INTERLEAVED.timeline(p, v, m).bubble())
              .isCloseTo((p - 1.0) / (v * m + p - 1), offset(1e-12));
        }
      }
    }
  }

  /** With two passes of one unit each, (p - 1) / (3 m + p - 1): a third of the idle time. */
  @Test
  void theZeroBubbleScheduleIdlesAThirdAndHoldsNoMore() {
    for (int p = 1; p <= 6; p++) {
      for (int m = p; m <= 4 * p; m++) {
        Timeline zb = Schedule.ZB_H1.timeline(p, 1, m);
        assertThat(zb.bubble())
            .as("%d ranks, %d microbatches", p, m)
            .isCloseTo((p - 1.0) / (3 * m + p - 1), offset(1e-12));
        for (int r = 0; r < p; r++) {
          assertThat(zb.activations(r))
              .isLessThanOrEqualTo(Schedule.ONE_F_ONE_B.timeline(p, 1, m).activations(0));
        }
      }
    }
    assertThat(Schedule.ZB_H1.actions(1, 3, 1, 4))
        .hasToString("[1F0, 1F1, 1I0, 1F2, 1I1, 1W0, 1F3, 1I2, 1W1, 1I3, 1W2, 1W3]");
  }

  @Test
  void oneForwardOneBackwardHoldsAsManyActivationsAsThereAreStagesLeft() {
    assertThat(Schedule.GPIPE.timeline(4, 1, 8).activations(0)).isEqualTo(8);
    assertThat(
            List.of(0, 1, 2, 3).stream().map(Schedule.ONE_F_ONE_B.timeline(4, 1, 8)::activations))
        .containsExactly(4, 3, 2, 1);
  }

  /** P25: whatever the numbers, a schedule runs to its end or says at once that it cannot. */
  @ParameterizedTest
  @EnumSource
  void everySetOfNumbersRunsOrIsRefused(Schedule schedule) {
    int ran = 0;
    for (int ranks = 1; ranks <= 5; ranks++) {
      for (int perRank = 1; perRank <= 3; perRank++) {
        for (int m = 1; m <= 6; m++) {
          try {
            Timeline t = schedule.timeline(ranks, perRank, m);
            assertThat(t.bubble()).isBetween(0.0, 1.0);
            ran++;
          } catch (IllegalArgumentException e) {
            assertThat(e)
                .hasMessageContaining("schedule " + schedule)
                .hasMessageContaining("expected");
          }
        }
      }
    }
    assertThat(ran).isGreaterThanOrEqualTo(30);
  }

  @Test
  void badNumbersAreRefused() {
    assertThatThrownBy(() -> Schedule.ONE_F_ONE_B.timeline(2, 2, 4))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("INTERLEAVED");
    assertThatThrownBy(() -> Schedule.INTERLEAVED.timeline(2, 2, 3))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("3 microbatches on 2 ranks");
    assertThatThrownBy(() -> Schedule.GPIPE.timeline(2, 1, 0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("0 microbatches");
  }

  @Test
  void aScheduleThatWouldHangIsRefused() {
    List<List<Action>> circle =
        List.of(
            List.of(Action.forward(0, 0), Action.backward(0, 0), Action.forward(0, 1)),
            List.of(Action.forward(1, 0), Action.forward(1, 1), Action.backward(1, 0)));
    assertThatThrownBy(() -> Timeline.of(Schedule.GPIPE, circle, 2))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("wait for ever before 0B0");
  }
}
