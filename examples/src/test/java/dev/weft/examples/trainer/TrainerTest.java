package dev.weft.examples.trainer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.Work;
import dev.weft.parallel.health.DesyncException;
import dev.weft.parallel.health.NonFiniteException;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.op.InPlace;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TrainerTest {
  private static TrainOptions options(String mesh, String... more) {
    String all =
        "--seq 16 --eval-batches 1 --layers 2 --mesh " + mesh + " " + String.join(" ", more);
    return TrainOptions.parse(all.trim().split(" "));
  }

  /** P61: what a step or an evaluation makes ends with it, on all ranks, to the byte. */
  @ParameterizedTest
  @ValueSource(strings = {"dp=2", "pp=2,tp=2", "fsdp=2,pp=2"})
  void memoryDoesNotGrowFromStepToStep(String mesh) {
    TrainOptions options = options(mesh);
    LocalWorld.run(
        options.dims(0).ranks(),
        rank -> {
          try (Trainer trainer = new Trainer(options)) {
            long before = 0;
            for (int step = 0; step < 12; step++) {
              LossRow row = trainer.step(step, 8L * step);
              assertThat(row.loss()).isPositive();
              assertThat(trainer.evaluate()).isPositive();
              // All ranks are between steps while the first looks.
              Work unused = Distributed.barrier();
              if (rank == 0 && step == 3) {
                before = HostMemory.liveBytes();
              }
              if (rank == 0 && step == 11) {
                // Garbage of earlier tests may still go; nothing may come.
                assertThat(HostMemory.liveBytes()).isLessThanOrEqualTo(before);
              }
              unused = Distributed.barrier();
            }
          }
        });
  }

  /** The ranks of one stage alone see it; all end before the update. */
  @Test
  void aLossThatIsNotFiniteEndsTheRunOnAllRanks() {
    TrainOptions options = options("pp=2", "--lr", "1e30", "--warmup", "0");
    List<String> said =
        LocalWorld.call(
            2,
            rank -> {
              try (Trainer trainer = new Trainer(options)) {
                LossRow first = trainer.step(0, 0);
                assertThat(first.loss()).isFinite();
                assertThatThrownBy(() -> trainer.step(1, 8))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageStartingWith("step 2: the loss is ")
                    .hasMessageEndingWith("expected finite numbers");
                return first.toString().replaceAll("tokensPerSecond=[^,]*", "");
              }
            });
    assertThat(said.get(0)).isEqualTo(said.get(1));
  }

  @Test
  void theFirstModuleWithNumbersThatAreNotFiniteIsNamed() {
    TrainOptions options = options("dp=2", "--lr", "1e30", "--warmup", "0", "--check-nan");
    LocalWorld.run(
        2,
        rank -> {
          try (Trainer trainer = new Trainer(options)) {
            LossRow unused = trainer.step(0, 0);
            assertThatThrownBy(() -> trainer.step(1, 8))
                .isInstanceOf(NonFiniteException.class)
                .hasMessageMatching("(?s)step 2, rank 0: the output of 'layers\\.0.* \\[1], too");
          }
        });
  }

  @Test
  void replicasThatDifferEndTheRun() {
    TrainOptions options = options("dp=2,tp=2", "--check-desync", "2", "--check-stragglers");
    LocalWorld.run(
        4,
        rank -> {
          try (Trainer trainer = new Trainer(options)) {
            trainer.health().afterStep(2, System.out);
            Tensor norm = trainer.model().namedParameters().get("norm.weight");
            if (rank >= 2) {
              Tensor unused = Autograd.noGrad(() -> InPlace.mul(norm, 2));
            }
            trainer.health().afterStep(3, System.out);
            assertThatThrownBy(() -> trainer.health().afterStep(4, System.out))
                .isInstanceOf(DesyncException.class)
                .hasMessageContaining("step 4: parameter 'norm.weight' differs");
          }
        });
  }
}
