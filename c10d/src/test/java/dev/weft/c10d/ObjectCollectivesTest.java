package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Objects travel as JSON, and arrive as the class that the receiver names. */
@Timeout(60)
class ObjectCollectivesTest {
  record Setting(String name, double value) {}

  @Test
  void plainValuesAndRecords() {
    LocalWorld.run(
        3,
        rank -> {
          List<Setting> all =
              ObjectCollectives.allGatherObject(
                  new Setting("x".repeat(rank * 3000), Double.NaN), Setting.class, null);
          assertThat(all).hasSize(3);
          assertThat(all.get(2).name()).hasSize(6000);
          assertThat(all.get(1).value()).isNaN();

          List<Object> values = Arrays.asList(Map.of("a", 1), "two", null, 4L << 40);
          List<Object> got =
              ObjectCollectives.broadcastObjectList(
                  rank == 1 ? values : Arrays.asList(null, null, null, null),
                  Object.class,
                  1,
                  null);
          assertThat(got).isEqualTo(values);
        });
  }

  @Test
  void rootsAreGlobalRanksOfSubgroups() {
    LocalWorld.run(
        3,
        rank -> {
          ProcessGroup group = Distributed.newGroup(1, 2);
          List<Integer> gathered =
              ObjectCollectives.gatherObject(rank * 10, Integer.class, 2, group);
          assertThat(gathered).isEqualTo(rank == 2 ? List.of(10, 20) : List.of());
          String mine =
              ObjectCollectives.scatterObject(
                  rank == 2 ? List.of("one", "two") : null, String.class, 2, group);
          assertThat(mine).isEqualTo(rank == 0 ? null : rank == 1 ? "one" : "two");
        });
  }

  /** What arrives cannot choose a class: it is read as the named one or refused. */
  @Test
  void anObjectOfAnotherKindIsRefused() {
    LocalWorld.run(
        2,
        rank -> {
          List<String> values = List.of("no number");
          if (rank == 0) {
            assertThat(ObjectCollectives.broadcastObjectList(values, String.class, 0, null))
                .isEqualTo(values);
            return;
          }
          assertThatThrownBy(
                  () ->
                      ObjectCollectives.broadcastObjectList(
                          Arrays.<Integer>asList((Integer) null), Integer.class, 0, null))
              .isInstanceOf(DistributedException.class)
              .hasMessageContaining("the object of rank 0 is no java.lang.Integer")
              .hasMessageContaining("no number");
        });
  }
}
