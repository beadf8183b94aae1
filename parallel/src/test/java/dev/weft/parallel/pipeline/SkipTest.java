package dev.weft.parallel.pipeline;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.parallel.SmallModels.rows;
import static dev.weft.parallel.SmallModels.values;
import static dev.weft.parallel.SmallModels.weights;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.offset;

import dev.weft.c10d.LocalWorld;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.nn.Recompute;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Pointwise;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Values that go past stages, as in a U-shaped model. */
class SkipTest {
  private static final int WIDTH = 4;
  private static final int ROWS = 8;

  /** A layer that puts its result away, takes another's, or both. */
  private static final class Block extends Module {
    private final Linear layer;
    private final List<String> stash;
    private final List<String> pop;

    Block(int seed, List<String> stash, List<String> pop) {
      this.layer = registerModule("layer", new Linear(weights(seed, WIDTH, WIDTH), null));
      this.stash = stash;
      this.pop = pop;
    }

    @Override
    protected Tensor forward(Tensor... inputs) {
      Tensor h = Activations.tanh(layer.call(inputs));
      for (String name : pop) {
        h = Pointwise.mul(Skip.of(name).pop(), Pointwise.add(h, 1));
      }
      for (String name : stash) {
        Tensor unused = Skip.of(name).stash(Pointwise.mul(h, 2));
      }
      return h;
    }
  }

  /** Four stages: "far" goes from the first to the last, "near" from the second to the last. */
  private static List<Module> blocks() {
    return List.of(
        new Block(1, List.of("far"), List.of()),
        new Block(2, List.of("near", "next"), List.of()),
        new Block(3, List.of(), List.of("next")),
        new Block(4, List.of(), List.of("near", "far")));
  }

  private static Tensor mse(Tensor output, Tensor target) {
    return Losses.mseLoss(output, target, "mean");
  }

  private static List<float[]> gradients(List<Module> blocks) {
    return blocks.stream().map(b -> values(b.parameter("layer.weight").grad())).toList();
  }

  /**
   * P26: the last stage waits for the first and the third, while these wait for each other; beside
   * a neighbour's message another one goes the same way.
   */
  @ParameterizedTest
  @CsvSource({
    "GPIPE,4,1,4,false",
    "ONE_F_ONE_B,4,1,4,false",
    "ONE_F_ONE_B,4,1,2,false",
    "INTERLEAVED,2,2,4,false",
    "INTERLEAVED,2,2,4,true",
    "ZB_H1,4,1,4,false",
    "ZB_H1,4,1,4,true",
    "GPIPE,1,4,2,false"
  })
  void gradientsAreThoseOfTheWholeModel(
      Schedule schedule, int ranks, int perRank, int microbatches, boolean uneven) {
    List<Module> whole = blocks();
    Tensor y = rows(0, ROWS, WIDTH);
    for (Module b : whole) {
      y = b.call(y);
    }
    Tensor want = mse(y, rows(50, 50 + ROWS, WIDTH));
    want.backward();
    List<float[]> gradients = gradients(whole);
    LocalWorld.of(ranks)
        .timeout(Duration.ofSeconds(30))
        .run(
            rank -> {
              List<Module> all = blocks();
              List<Module> mine = new ArrayList<>();
              for (int s = rank; s < all.size(); s += ranks) {
                mine.add(all.get(s));
              }
              Pipeline p =
                  Pipeline.of(
                          initDeviceMesh("cpu", dim("pp", ranks)),
                          mine,
                          schedule,
                          microbatches,
                          SkipTest::mse)
                      .withSkip("far", 0, 3)
                      .withSkip("near", 1, 3)
                      .withSkip("next", 1, 2);
              p = uneven ? p.withUnevenMicrobatches() : p;
              for (int step = 0; step < 2; step++) {
                mine.forEach(Module::zeroGrad);
                Tensor loss = p.step(rows(0, ROWS, WIDTH), rows(50, 50 + ROWS, WIDTH));
                for (int i = 0; i < mine.size(); i++) {
                  assertThat(gradients(mine).get(i))
                      .containsExactly(gradients.get(rank + i * ranks), offset(1e-6f));
                }
                if (loss != null) {
                  assertThat(loss.item()).isCloseTo(want.item(), offset(1e-6));
                }
              }
            });
  }

  private static void run(List<Module> blocks, Pipeline p) {
    assertThat(blocks).isNotEmpty();
    Tensor unused = p.step(rows(0, ROWS, WIDTH), rows(50, 50 + ROWS, WIDTH));
  }

  private static Pipeline pipeline(List<Module> blocks) {
    return Pipeline.of(
        initDeviceMesh("cpu", dim("pp", 1)), blocks, Schedule.GPIPE, 2, SkipTest::mse);
  }

  @Test
  void whatIsNotDeclaredOrNotUsedIsRefused() {
    LocalWorld.run(
        1,
        rank -> {
          List<Module> two =
              List.of(new Block(1, List.of("a"), List.of()), new Block(2, List.of(), List.of("a")));
          assertThatThrownBy(() -> run(two, pipeline(two)))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("stage 0 left the skips [a]")
              .hasMessageContaining("withSkip");
          assertThatThrownBy(() -> run(two, pipeline(two).withSkip("a", 0, 1).withSkip("b", 0, 1)))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("stage 0 has not stashed the skip 'b'");
          List<Module> popless =
              List.of(new Block(1, List.of("a"), List.of()), new Block(2, List.of(), List.of()));
          assertThatThrownBy(() -> run(popless, pipeline(popless).withSkip("a", 0, 1)))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("stage 1 left the skips [a]");
          assertThatThrownBy(() -> pipeline(two).withSkip("a", 1, 1))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("from stage 1 to 1");
          assertThatThrownBy(() -> pipeline(two).withSkip("a", 0, 1).withSkip("a", 0, 1))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("'a' is there already");
          assertThatThrownBy(() -> two.get(1).call(rows(0, 2, WIDTH)))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("'a' was popped, but not stashed");
          assertThatThrownBy(
                  () -> Recompute.checkpoint(t -> Skip.of("c").stash(t), rows(0, 2, WIDTH)))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("a piece that is recomputed");
        });
  }
}
