package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.Tensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Groups, their identity and their end. */
@Timeout(60)
class GroupTest {
  private static LocalWorld world(int size, Way way) {
    LocalWorld world = LocalWorld.of(size).timeout(Duration.ofSeconds(20));
    return way.of(world);
  }

  private static double sumOfPowers(ProcessGroup group) {
    Tensor t = Tensor.of(new float[] {1 << Distributed.rank()});
    Work unused = group.allReduce(t, ReduceOp.SUM);
    return t.item();
  }

  /** P37: ranks 0, 3 make {0, 3} while ranks 1, 2 make {1, 2}, in one call. */
  @ParameterizedTest
  @EnumSource
  void differentRanksMakeDifferentGroupsAtOnce(Way way) {
    world(4, way)
        .run(
            rank -> {
              boolean outer = rank == 0 || rank == 3;
              ProcessGroup group = outer ? Distributed.newGroup(0, 3) : Distributed.newGroup(2, 1);
              assertThat(group.ranks()).isEqualTo(outer ? List.of(0, 3) : List.of(1, 2));
              assertThat(sumOfPowers(group)).isEqualTo(outer ? 9 : 6);
            });
  }

  /** P38: a rank's private history does not matter. */
  @ParameterizedTest
  @EnumSource
  void earlierPrivateGroupsDoNotMatter(Way way) {
    world(3, way)
        .run(
            rank -> {
              for (int i = 0; i < rank; i++) {
                ProcessGroup own = Distributed.newGroup(rank);
                assertThat(sumOfPowers(own)).isEqualTo(1 << rank);
              }
              ProcessGroup first = Distributed.newGroup(0, 1, 2);
              ProcessGroup second = Distributed.newGroup(0, 1, 2);
              assertThat(first.name()).isNotEqualTo(second.name());
              // Used in different orders on different ranks: they do not get mixed up.
              Tensor a = Tensor.of(new float[] {1});
              Tensor b = Tensor.of(new float[] {10});
              Work one = first.allReduce(a, ReduceOp.SUM, CollectiveOptions.ASYNC);
              Work two = second.allReduce(b, ReduceOp.SUM, CollectiveOptions.ASYNC);
              (rank == 1 ? two : one).await();
              one.await();
              two.await();
              assertThat(a.item()).isEqualTo(3);
              assertThat(b.item()).isEqualTo(30);
            });
  }

  @Test
  void ranksAreSortedUnlessToldOtherwise() {
    LocalWorld.run(
        3,
        rank -> {
          ProcessGroup sorted = Distributed.newGroup(2, 0);
          ProcessGroup kept = Distributed.newGroup(List.of(2, 0), GroupOptions.DEFAULT.keepOrder());
          if (rank == 1) {
            assertThat(sorted.isMember()).isFalse();
            assertThat(sorted.rank()).isEqualTo(-1);
            assertThat(sorted.size()).isEqualTo(-1);
            // As in PyTorch: a warning, and nothing happens.
            Tensor t = Tensor.of(new float[] {5});
            Work none = sorted.allReduce(t, ReduceOp.SUM);
            assertThat(none.isSuccess()).isTrue();
            assertThat(t.item()).isEqualTo(5);
            return;
          }
          assertThat(sorted.rank()).isEqualTo(rank == 0 ? 0 : 1);
          assertThat(kept.rank()).isEqualTo(rank == 0 ? 1 : 0);
          assertThat(kept.ranks()).containsExactly(2, 0);
          assertThat(kept.globalRank(0)).isEqualTo(2);
          assertThat(kept.groupRank(0)).isEqualTo(1);
          Tensor t = Tensor.of(new float[] {rank});
          Work unused = kept.broadcast(t, 0);
          assertThat(t.item()).isEqualTo(2);
          // On the facade ranks are global.
          t = Tensor.of(new float[] {rank});
          unused = Distributed.broadcast(t, 0, kept, CollectiveOptions.SYNC);
          assertThat(t.item()).isEqualTo(0);
          assertThatThrownBy(() -> kept.groupRank(1)).hasMessageContaining("no member");
          assertThatThrownBy(() -> kept.globalRank(2)).hasMessageContaining("group rank 2");
          Tensor u = Tensor.of(new float[] {rank});
          assertThatThrownBy(() -> Distributed.broadcast(u, 1, kept, CollectiveOptions.SYNC))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("rank 1");
        });
  }

  @Test
  void badRanksAreRefused() {
    LocalWorld.run(
        2,
        rank -> {
          assertThatThrownBy(() -> Distributed.newGroup(0, 0)).hasMessageContaining("twice");
          assertThatThrownBy(() -> Distributed.newGroup(0, 2)).hasMessageContaining("rank 2");
          assertThatThrownBy(() -> Distributed.newGroup(-1)).hasMessageContaining("rank -1");
          assertThatThrownBy(() -> Distributed.newGroup(List.of(), GroupOptions.DEFAULT))
              .hasMessageContaining("empty");
          assertThatThrownBy(() -> Distributed.newSubgroups(3)).hasMessageContaining("3");
          assertThatThrownBy(
                  () ->
                      Distributed.newGroup(List.of(0, 1), GroupOptions.DEFAULT.withBackend("nope")))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("nope")
              .hasMessageContaining("host");
        });
  }

  @ParameterizedTest
  @EnumSource
  void subgroupsAndSplits(Way way) {
    world(4, way)
        .run(
            rank -> {
              Subgroups pairs = Distributed.newSubgroups(2);
              ProcessGroup own = java.util.Objects.requireNonNull(pairs.own());
              assertThat(pairs.all()).hasSize(2);
              assertThat(pairs.all().stream().filter(ProcessGroup::isMember)).containsExactly(own);
              assertThat(sumOfPowers(own)).isEqualTo(rank < 2 ? 3 : 12);

              Subgroups listed =
                  Distributed.newSubgroupsByEnumeration(List.of(new int[] {0, 2}, new int[] {1}));
              assertThat(listed.own() == null).isEqualTo(rank == 3);
              assertThatThrownBy(
                      () ->
                          Distributed.newSubgroupsByEnumeration(
                              List.of(new int[] {0, 2}, new int[] {2})))
                  .hasMessageContaining("rank 2 is in two");

              ProcessGroup odd = Distributed.newGroup(1, 3, 0);
              if (odd.isMember()) {
                // Group ranks of the parent: 0 and 2 are ranks 0 and 3.
                ProcessGroup part = Distributed.splitGroup(odd, List.of(new int[] {0, 2}));
                assertThat(part.isMember()).isEqualTo(rank != 1);
                if (part.isMember()) {
                  assertThat(sumOfPowers(part)).isEqualTo(9);
                }
              }
            });
  }

  @Test
  void backendsByDeviceType() {
    LocalWorld.of(2)
        .backend("cpu:gloo")
        .run(
            rank -> {
              ProcessGroup world = Distributed.world();
              assertThat(world.backendConfig()).isEqualTo("cpu:host");
              assertThat(world.backend("cpu").name()).isEqualTo("host");
              assertThatThrownBy(() -> world.backend("cuda"))
                  .isInstanceOf(IllegalArgumentException.class)
                  .hasMessageContaining("no backend for device type 'cuda'");
              assertThat(sumOfPowers(world)).isEqualTo(3);
            });
    assertThatThrownBy(() -> LocalWorld.of(1).backend("cpu:host,cpu:fake").run(rank -> {}))
        .hasMessageContaining("twice");
    assertThatThrownBy(() -> LocalWorld.of(1).backend("cpu:").run(rank -> {}))
        .hasMessageContaining("malformed");
  }

  /** P49: many groups made and destroyed in any order leave nothing behind. */
  @ParameterizedTest
  @EnumSource
  void destroyedGroupsLeaveNothing(Way way) {
    world(2, way)
        .run(
            rank -> {
              List<ProcessGroup> groups = new ArrayList<>();
              for (int i = 0; i < 200; i++) {
                ProcessGroup group = Distributed.newGroup();
                groups.add(group);
                assertThat(sumOfPowers(group)).isEqualTo(3);
              }
              for (int i = 0; i < 200; i++) {
                ProcessGroup group = groups.get(rank == 0 ? i : 199 - i);
                group.destroy();
                group.destroy();
                assertThatThrownBy(group::barrier)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("destroyed");
              }
              assertThat(RankContext.current().groups().liveCount()).isEqualTo(1);
              assertThat(sumOfPowers(Distributed.world())).isEqualTo(3);
            });
  }

  /** Work under way when a group is destroyed ends, with what is known of it. */
  @ParameterizedTest
  @EnumSource
  void destroyWithMessagesUnderWay(Way way) {
    world(2, way)
        .run(
            rank -> {
              ProcessGroup group = Distributed.newGroup();
              Tensor t = Tensor.of(new float[] {1});
              Work receive = group.irecv(t, 1 - rank, 0);
              Work send = group.isend(t, 1 - rank, 1);
              group.destroy();
              assertThatThrownBy(receive::await).hasMessageContaining("destroyed");
              assertThatThrownBy(send::await).hasMessageContaining("destroyed");
              Work unused = Distributed.barrier();
            });
  }

  @Test
  void anAbortedGroupEndsItsWork() {
    LocalWorld.run(
        2,
        rank -> {
          ProcessGroup group = Distributed.newGroup();
          if (rank == 0) {
            Tensor t = Tensor.of(new float[] {1});
            Work work = group.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC);
            Work receive = group.irecv(t, 1, 0);
            group.abort(new IllegalStateException("enough"));
            assertThatThrownBy(work::await).hasMessageContaining("enough");
            assertThatThrownBy(receive::await).hasMessageContaining("enough");
          }
          assertThat(sumOfPowers(Distributed.world())).isEqualTo(3);
        });
  }
}
