package dev.weft.parallel;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.parallel.SmallModels.assertClose;
import static dev.weft.parallel.SmallModels.blocks;
import static dev.weft.parallel.SmallModels.gradients;
import static dev.weft.parallel.SmallModels.rows;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.offset;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Sequential;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Losses;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GlobalMeanTest {
  private static final int WIDTH = 5;
  // Of four rows each: one valid target on the first rank, three on the second.
  private static final long[] TARGETS = {2, -100, -100, -100, 1, 0, -100, 4};

  private static Tensor targets(int from, int to) {
    return Tensor.of(TARGETS, TARGETS.length).slice(0, from, to);
  }

  private static Tensor loss(Tensor logits, Tensor target, String reduction) {
    return Losses.crossEntropy(logits, target, reduction, Losses.IGNORE_INDEX, 0);
  }

  /** P24: one valid token on one rank and three on the other weigh alike. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void everyValidTokenCountsAlike(boolean sharded) {
    Sequential whole = blocks(2, WIDTH, 7);
    Tensor want = loss(whole.call(rows(0, 8, WIDTH)), targets(0, 8), "mean");
    want.backward();
    List<float[]> gradients = gradients(whole);
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", 2));
          Sequential m = blocks(2, WIDTH, 7);
          Object unused = sharded ? FullySharded.fullyShard(m, mesh) : Ddp.of(m, mesh);
          Tensor sum =
              loss(
                  m.call(rows(4 * rank, 4 * rank + 4, WIDTH)),
                  targets(4 * rank, 4 * rank + 4),
                  "sum");
          Tensor mean = GlobalMean.of(sum, rank == 0 ? 1 : 3, mesh.getGroup());
          mean.backward();
          assertClose(gradients(m), gradients);
          Tensor shown = mean.detach().copy();
          Work done = mesh.getGroup().allReduce(shown, ReduceOp.AVG);
          assertThat(shown.item()).isCloseTo(want.item(), offset(1e-6));
        });
  }

  @Test
  void badArgumentsAreRefused() {
    LocalWorld.run(
        1,
        rank -> {
          Tensor one = rows(0, 1, 1);
          assertThatThrownBy(() -> GlobalMean.of(rows(0, 2, 1), 1, Distributed.world()))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("expected one element");
          assertThatThrownBy(() -> GlobalMean.of(one, 0, Distributed.world()))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("nothing counts");
        });
  }
}
