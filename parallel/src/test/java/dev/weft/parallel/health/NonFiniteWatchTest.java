package dev.weft.parallel.health;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.parallel.SmallModels.blocks;
import static dev.weft.parallel.SmallModels.loss;
import static dev.weft.parallel.SmallModels.rows;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.LocalWorld;
import dev.weft.nn.Function;
import dev.weft.nn.Linear;
import dev.weft.nn.Sequential;
import dev.weft.parallel.Ddp;
import dev.weft.parallel.FullySharded;
import dev.weft.parallel.SmallModels;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Pointwise;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class NonFiniteWatchTest {
  private static final int WIDTH = 4;

  private static void poison(Tensor t) {
    Autograd.noGrad(
        () -> {
          Tensor unused = InPlace.mul(t.slice(0, 0, 1), Double.POSITIVE_INFINITY);
        });
  }

  /** All ranks get bad gradients from the reduction; the one where it began is named. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void theFirstModuleAndRankAreNamedOnAllRanks(boolean sharded) {
    LocalWorld.run(
        2,
        rank -> {
          Sequential model = blocks(2, WIDTH, 6);
          var mesh = initDeviceMesh("cpu", dim("dp", 2));
          Object unused = sharded ? FullySharded.fullyShard(model, mesh) : Ddp.of(model, mesh);
          try (NonFiniteWatch watch = NonFiniteWatch.over(model)) {
            loss(model.call(rows(0, 2, WIDTH))).backward();
            watch.check(6);
            model.zeroGrad();
            if (rank == 1) {
              model
                  .module("1.1")
                  .forwardPreHook(
                      (m, in) -> new Tensor[] {in[0].mul(Float.POSITIVE_INFINITY).mul(0)});
            }
            loss(model.call(rows(0, 2, WIDTH))).backward();
            assertThatThrownBy(() -> watch.check(7))
                .isInstanceOf(NonFiniteException.class)
                .hasMessageStartingWith(
                    "step 7, rank 1: the output of '1.1' (Function) is not finite: 12 of 12")
                .hasMessageEndingWith("; so was its input; then found on ranks [0], too");
          }
        });
  }

  @Test
  void badInputsAreNotBlamedWhereAnotherRankHasTheOrigin() {
    LocalWorld.run(
        2,
        rank -> {
          Sequential model = SmallModels.chain(2, WIDTH);
          try (NonFiniteWatch watch = NonFiniteWatch.over(model)) {
            Tensor x = rows(0, 2, WIDTH);
            if (rank == 0) {
              poison(x);
            } else {
              poison(model.parameter("1.weight"));
            }
            Tensor unused = model.call(x);
            assertThatThrownBy(() -> watch.check(1))
                .hasMessageStartingWith("step 1, rank 1: the output of '1' (Linear)");
          }
        });
  }

  /** The forward is finite: sqrt(0) has an infinite slope. */
  @Test
  void backwardIsWatchedFromTheEnd() {
    LocalWorld.run(
        1,
        rank -> {
          Sequential model =
              new Sequential(
                  new Linear(SmallModels.weights(1, WIDTH, WIDTH), null),
                  new Function(y -> Pointwise.pow(y.mul(0), 0.5)));
          try (NonFiniteWatch watch = NonFiniteWatch.over(model)) {
            model.call(rows(0, 2, WIDTH)).sum().backward();
            assertThatThrownBy(() -> watch.check(3))
                .hasMessageStartingWith(
                    "step 3, rank 0: the gradient of the output of '0' (Linear) is not finite");
          }
          model.zeroGrad();
          try (NonFiniteWatch watch = NonFiniteWatch.over(model)) {
            watch.close();
            model.call(rows(0, 2, WIDTH)).sum().backward();
            // Hooks are off; what is left is in the parameters.
            assertThatThrownBy(() -> watch.check(4))
                .hasMessageStartingWith(
                    "step 4, rank 0: the gradient of parameter '0.weight' is not finite: 16 of 16");
          }
        });
  }

  /** A sum that overflows is not yet an element that is infinite. */
  @Test
  void largeNumbersAreFinite() {
    LocalWorld.run(
        1,
        rank -> {
          Sequential model = new Sequential(new Function(y -> y.mul(1e38)));
          try (NonFiniteWatch watch = NonFiniteWatch.over(model)) {
            Tensor y = model.call(Tensor.of(new float[] {3, 3, 3}, 3));
            assertThat(y.sum().item()).isInfinite();
            watch.check(1);
          }
        });
  }
}
