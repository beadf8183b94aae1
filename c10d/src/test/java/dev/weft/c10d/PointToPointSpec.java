package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Sends and receives. */
@Timeout(60)
abstract class PointToPointSpec {
  private final OnRanks ranks;

  PointToPointSpec(OnRanks ranks) {
    this.ranks = ranks;
  }

  /** P31: tags are honoured, whichever is received first. */
  @Test
  void tagsSelectAndOrderIsKeptWithinATag() {
    ranks.run(
        2,
        (rank, world) -> {
          if (rank == 0) {
            List<Work> sends = new ArrayList<>();
            for (int i = 0; i < 6; i++) {
              sends.add(world.isend(Tensor.of(new float[] {i}), 1, i % 2));
            }
            sends.forEach(Work::await);
          } else {
            List<Double> got = new ArrayList<>();
            for (int tag : new int[] {1, 0, 1, 0, 0, 1}) {
              Tensor t = Tensor.of(new float[1]);
              Work unused = world.recv(t, 0, tag);
              got.add(t.item());
            }
            assertThat(got).containsExactly(1., 0., 3., 2., 4., 5.);
          }
        });
  }

  /** P30: 3 elements against 5 and 5 against 3 are an error on both sides, as another dtype is. */
  @Test
  void sizesMustFit() {
    ranks.run(
        2,
        (rank, world) -> {
          for (int tag = 0; tag < 3; tag++) {
            DType dtype = tag == 2 && rank == 1 ? DType.INT32 : DType.FLOAT32;
            Tensor t = Tensors.empty(dtype, tag == 2 ? 4 : (tag == rank ? 3 : 5));
            int at = tag;
            Throwable failure =
                catchThrowable(
                    () -> {
                      Work unused = rank == 0 ? world.send(t, 1, at) : world.recv(t, 0, at);
                    });
            assertThat(failure)
                .isInstanceOf(MismatchException.class)
                .hasMessageContaining("were sent by rank 0 with tag " + tag)
                .hasMessageContaining("are expected");
          }
          Work unused = world.barrier();
        });
  }

  /** P34: posting never blocks, and waiting ends by name. */
  @Test
  void postingNeverBlocks() {
    ranks.run(
        2,
        (rank, world) -> {
          if (rank == 1) {
            world.context().store().waitFor(List.of("posted"));
            return;
          }
          CollectiveOptions brief = CollectiveOptions.ASYNC.withTimeout(Duration.ofMillis(300));
          // More than any socket buffer holds.
          Work send = world.send(Tensors.empty(DType.FLOAT32, 1 << 24), 1, 5, brief);
          Work receive = world.recv(Tensors.empty(DType.FLOAT32, 8), 1, 6, brief);
          assertThatThrownBy(send::await)
              .isInstanceOf(OperationTimeoutException.class)
              .hasMessageContaining("send to rank 1 (tag 5)")
              .hasMessageContaining("rank 1 did not receive it");
          assertThatThrownBy(receive::await)
              .isInstanceOf(OperationTimeoutException.class)
              .hasMessageContaining("recv from rank 1 (tag 6)")
              .hasMessageContaining("rank 1 did not send it");
          world.context().store().set("posted", "");
        });
  }

  /** A message that its sender gave up on is not received later. */
  @Test
  void aSendThatTimedOutIsGone() {
    ranks.run(
        2,
        (rank, world) -> {
          if (rank == 0) {
            Tensor old = Tensor.of(new float[] {1});
            CollectiveOptions brief = CollectiveOptions.SYNC.withTimeout(Duration.ofMillis(50));
            assertThatThrownBy(() -> world.send(old, 1, 0, brief))
                .isInstanceOf(OperationTimeoutException.class);
            old.close();
            Work unused = world.barrier();
            unused = world.send(Tensor.of(new float[] {2}), 1, 0);
          } else {
            Work unused = world.barrier();
            Tensor t = Tensor.of(new float[1]);
            unused = world.recv(t, 0, 0);
            assertThat(t.item()).isEqualTo(2);
          }
        });
  }

  /** P33: hundreds of operations per peer, posted in any order. */
  @Test
  void manyOperationsPerPeer() {
    int n = 4;
    int each = 300;
    ranks.run(
        n,
        (rank, world) -> {
          try (TensorScope scope = TensorScope.open()) {
            List<Work> works = new ArrayList<>();
            List<StridedTensor> got = new ArrayList<>();
            for (int i = 0; i < each; i++) {
              for (int p = 0; p < n; p++) {
                if (p != rank) {
                  StridedTensor t = Tensors.empty(DType.INT64, 1);
                  got.add(t);
                  works.add(world.isend(Tensor.of(new long[] {value(rank, p, i)}), p, i % 3));
                  works.add(world.irecv(t, p, i % 3));
                }
              }
            }
            works.forEach(Work::await);
            int at = 0;
            for (int i = 0; i < each; i++) {
              for (int p = 0; p < n; p++) {
                if (p != rank) {
                  assertThat(Values.get(got.get(at++), 0)).isEqualTo(value(p, rank, i));
                }
              }
            }
          }
        });
  }

  private static long value(int from, int to, int i) {
    return from * 1_000_000L + to * 10_000L + i;
  }

  @Test
  void anySourceStridedAndEmpty() {
    ranks.run(
        3,
        (rank, world) -> {
          for (long[] shape : new long[][] {{0}, {}, {3, 2}, {50, 70}}) {
            if (rank == 0) {
              double[] sum = new double[(int) Values.numel(shape)];
              for (int r = 1; r < 3; r++) {
                StridedTensor t = Values.stridedEmpty(DType.FLOAT32, shape);
                Work unused = world.recv(t, ProcessGroup.ANY_SOURCE, 3);
                for (int i = 0; i < sum.length; i++) {
                  sum[i] += Values.get(t, i);
                }
              }
              for (int i = 0; i < sum.length; i++) {
                double expected = Values.of(1, i, DType.FLOAT32) + Values.of(2, i, DType.FLOAT32);
                assertThat(sum[i]).isEqualTo(expected);
              }
            } else {
              Work unused = world.send(Values.strided(rank, DType.FLOAT32, shape), 0, 3);
            }
            Work unused = world.barrier();
          }
        });
  }
}
