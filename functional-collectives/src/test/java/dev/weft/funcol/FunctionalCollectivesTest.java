package dev.weft.funcol;

import static dev.weft.funcol.FunctionalCollectives.allGatherTensor;
import static dev.weft.funcol.FunctionalCollectives.allReduce;
import static dev.weft.funcol.FunctionalCollectives.reduceScatterTensor;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Reductions;
import dev.weft.tensor.op.Views;
import org.junit.jupiter.api.Test;

class FunctionalCollectivesTest {
  /** P35: every way to read waits: views, operators, item, printing, ND4J. */
  @Test
  void whoeverReadsWaits() {
    LocalWorld.run(
        2,
        rank -> {
          ProcessGroup group = Distributed.world();
          // Rank 1 comes late, so that rank 0's results are pending when it reads them.
          if (rank == 1) {
            Thread.sleep(50);
          }
          Tensor x = Tensor.of(new float[] {rank, 10 + rank}, 1, 2);
          Tensor gathered = allGatherTensor(x, 1, group);
          assertThat(gathered.toFloatArray()).containsExactly(0, 10, 1, 11);
          assertThat(Views.select(allGatherTensor(x, 0, group), 0, 1).toFloatArray())
              .containsExactly(1, 11);
          assertThat(Pointwise.add(allReduce(x, "sum", group), 1).toFloatArray())
              .containsExactly(2, 22);
          assertThat(allReduce(Tensor.of(new float[] {1}), "sum", group).item()).isEqualTo(2);
          assertThat(allReduce(x, "sum", group).toString()).contains("21");
          assertThat(allReduce(x, "sum", group).toNd4j().getDouble(0, 1)).isEqualTo(21);
          assertThat(allReduce(x, "sum", group).ownedCopy().toFloatArray()).containsExactly(1, 21);
          assertThat(x.toFloatArray()).as("the input").containsExactly(rank, 10 + rank);
        });
  }

  /** P36: results that nobody reads leave nothing behind, and an input may be closed at once. */
  @Test
  void droppedResultsLeaveNothing() {
    LocalWorld.run(
        2,
        rank -> {
          ProcessGroup group = Distributed.world();
          group.barrier();
          try (TensorScope scope = TensorScope.open()) {
            for (int i = 0; i < 1000; i++) {
              Tensor x = Tensor.of(new float[] {rank, i, 3}, 1, 3);
              Tensor unused = allGatherTensor(x, 1, group);
              x.close();
            }
          }
          group.barrier();
          if (rank == 0) {
            assertThat(HostMemory.stats().liveBlocks()).isLessThan(100);
          }
          group.barrier();
        });
  }

  @Test
  void gradientsOfThePairs() {
    LocalWorld.run(
        2,
        rank -> {
          ProcessGroup group = Distributed.world();
          Tensor x = Tensor.of(new float[] {1, 2}, 2).requiresGrad(true);
          Tensor y = FunctionalCollectives.allGatherTensorAutograd(x, 0, group);
          Tensor weight = Tensor.of(new float[] {1, 2, 3, 4}, 4);
          Reductions.sum(Pointwise.mul(y, Pointwise.mul(weight, rank + 1))).backward();
          // Both ranks' losses reach each input: (1 + 2) times its weights.
          assertThat(x.grad().toFloatArray())
              .containsExactly(3 * (1 + 2 * rank), 3 * (2 + 2 * rank));
        });
  }

  @Test
  void badArgumentsAreNamed() {
    LocalWorld.run(
        2,
        rank -> {
          ProcessGroup group = Distributed.world();
          Tensor x = Tensor.of(new float[] {1, 2, 3}, 3);
          assertThatThrownBy(() -> reduceScatterTensor(x, ReduceOp.SUM, 0, group))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("[3]")
              .hasMessageContaining("2");
          assertThatThrownBy(() -> allReduce(x, "mean", group))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("mean");
          Tensor leaf = Tensor.of(new float[] {1, 2}, 2).requiresGrad(true);
          assertThatThrownBy(() -> allReduce(leaf, ReduceOp.MAX, group))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("max");
        });
  }
}
