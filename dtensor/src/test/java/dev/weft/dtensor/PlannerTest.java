package dev.weft.dtensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.DType;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class PlannerTest {
  private static Plan plan(int[] mesh, long[] shape, String from, String to) {
    return Planner.plan(mesh, shape, DType.FLOAT32, read(from), read(to));
  }

  private static List<Placement> read(String text) {
    return Arrays.stream(text.split(" ")).map(Placements::parse).toList();
  }

  @Test
  void oneStepTransitions() {
    int[] mesh = {4};
    long[] shape = {8, 4};
    assertThat(plan(mesh, shape, "S(0)", "R").steps())
        .singleElement()
        .satisfies(
            s -> {
              assertThat(s.action()).isEqualTo(Plan.Action.ALL_GATHER);
              assertThat(s.bytes()).isEqualTo(8 * 4 * 4 * 3 / 4);
            });
    assertThat(plan(mesh, shape, "P(sum)", "R").bytes()).isEqualTo(2 * 8 * 4 * 4 * 3 / 4);
    assertThat(plan(mesh, shape, "P(sum)", "S(1)").steps().get(0).action())
        .isEqualTo(Plan.Action.REDUCE_SCATTER);
    assertThat(plan(mesh, shape, "S(0)", "S(1)").steps().get(0).action())
        .isEqualTo(Plan.Action.ALL_TO_ALL);
    assertThat(plan(mesh, shape, "R", "S(1)").collectives()).isZero();
  }

  /** Nested cuts of one dimension are undone from the inside. */
  @Test
  void nestedCutsAreGatheredInnerFirst() {
    Plan plan = plan(new int[] {2, 4}, new long[] {8, 8}, "S(0) S(0)", "R R");
    assertThat(plan.steps()).extracting(Plan.Step::meshDim).containsExactly(1, 0);
  }

  /** Scattering before gathering moves less than the other way round. */
  @Test
  void theCheaperOrderIsTaken() {
    Plan plan = plan(new int[] {2, 4}, new long[] {8, 8}, "S(0) P(sum)", "R S(1)");
    assertThat(plan.steps().get(0).action()).isEqualTo(Plan.Action.REDUCE_SCATTER);
    assertThat(plan.collectives()).isEqualTo(2);
  }

  @Test
  void whatIsNotDefinedIsRefused() {
    assertThatThrownBy(() -> plan(new int[] {4}, new long[] {8}, "S(0)", "P(sum)"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("S(0) to P(sum)");
    assertThatThrownBy(() -> plan(new int[] {4}, new long[] {8}, "R", "P(product)"))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> plan(new int[] {2, 2}, new long[] {8}, "P(sum) P(max)", "R R"))
        .hasMessageContaining("do not commute");
  }
}
