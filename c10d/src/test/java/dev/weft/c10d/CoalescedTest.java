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
import org.junit.jupiter.params.provider.ValueSource;

/** Several operations in one call. */
@Timeout(60)
class CoalescedTest {
  private static Tensor vector(double... values) {
    return Tensor.of(values, values.length);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void collectivesOfOneCallEndTogether(boolean async) {
    CollectiveOptions options = CollectiveOptions.async(async);
    LocalWorld.run(
        2,
        rank -> {
          ProcessGroup g = Distributed.world();
          Tensor a = vector(rank, 1);
          Tensor b = vector(10 * rank);
          Work work = g.allReduceCoalesced(List.of(a, b), ReduceOp.SUM, options);
          work.await();
          assertThat(work.isSuccess()).isTrue();
          assertThat(work.future().join()).containsExactly(a, b);
          assertThat(a.toDoubleArray()).containsExactly(1, 2);
          assertThat(b.toDoubleArray()).containsExactly(10);

          Tensor whole = vector(0, 0);
          Tensor pair = vector(0, 0, 0, 0);
          g.allGatherIntoTensorCoalesced(
                  List.of(whole, pair), List.of(vector(rank), vector(rank, -rank)), options)
              .await();
          assertThat(whole.toDoubleArray()).containsExactly(0, 1);
          assertThat(pair.toDoubleArray()).containsExactly(0, 0, 1, -1);

          Tensor part = vector(0);
          g.reduceScatterTensorCoalesced(
                  List.of(part), List.of(vector(1, 2)), ReduceOp.SUM, options)
              .await();
          assertThat(part.toDoubleArray()).containsExactly(rank == 0 ? 2 : 4);
          assertThatThrownBy(() -> g.allReduceCoalesced(List.of(), ReduceOp.SUM, options))
              .hasMessageContaining("tensors is empty");
        });
  }

  /** P33: many messages between all pairs in one batch. */
  @ParameterizedTest
  @EnumSource
  void aBatchOfManyMessages(Way way) {
    int each = 100;
    LocalWorld world = LocalWorld.of(4).timeout(Duration.ofSeconds(30));
    way.of(world)
        .run(
            rank -> {
              List<P2POp> ops = new ArrayList<>();
              List<Tensor> got = new ArrayList<>();
              for (int peer = 0; peer < 4; peer++) {
                for (int i = 0; i < each && peer != rank; i++) {
                  Tensor t = vector(-1);
                  got.add(t);
                  ops.add(P2POp.irecv(t, peer));
                  ops.add(P2POp.isend(vector(1000 * rank + 100.0 * peer + i), peer));
                }
              }
              List<Work> works = Distributed.batchIsendIrecv(ops);
              assertThat(works).hasSize(ops.size());
              works.forEach(Work::await);
              int at = 0;
              for (int peer = 0; peer < 4; peer++) {
                for (int i = 0; i < each && peer != rank; i++) {
                  assertThat(got.get(at++).item()).isEqualTo(1000 * peer + 100.0 * rank + i);
                }
              }
            });
  }

  /** A bad message is found before any is posted. */
  @Test
  void aBadBatchPostsNothing() {
    LocalWorld.of(2)
        .timeout(Duration.ofSeconds(20))
        .run(
            rank -> {
              Tensor stale = vector(7);
              Tensor fresh = vector(8);
              assertThatThrownBy(
                      () ->
                          Distributed.batchIsendIrecv(
                              List.of(
                                  P2POp.isend(stale, 1 - rank),
                                  P2POp.isend(stale, 1 - rank).withTag(-3))))
                  .isInstanceOf(IllegalArgumentException.class)
                  .hasMessageContaining("ops[1]: tag is -3");
              Tensor got = vector(0);
              Work send = Distributed.world().isend(fresh, 1 - rank, 0);
              Work receive = Distributed.recv(got, ProcessGroup.ANY_SOURCE, 0);
              send.await();
              assertThat(got.item()).isEqualTo(8);
              assertThat(receive.sourceRank()).isEqualTo(1 - rank);
              assertThatThrownBy(send::sourceRank).isInstanceOf(IllegalStateException.class);
            });
  }
}
