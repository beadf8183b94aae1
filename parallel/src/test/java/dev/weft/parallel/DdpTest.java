package dev.weft.parallel;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.parallel.SmallModels.assertClose;
import static dev.weft.parallel.SmallModels.chain;
import static dev.weft.parallel.SmallModels.gradients;
import static dev.weft.parallel.SmallModels.loss;
import static dev.weft.parallel.SmallModels.rows;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.offset;

import dev.weft.c10d.LocalWorld;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.nn.Sequential;
import dev.weft.optim.Sgd;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Reductions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class DdpTest {
  /** Two layers of which the second may be left out. */
  private static final class TwoPaths extends Module {
    final Linear first =
        registerModule("first", new Linear(Tensor.of(new float[] {1, 2}, 1, 2), null));
    final Linear second =
        registerModule("second", new Linear(Tensor.of(new float[] {3, 4}, 1, 2), null));
    private final boolean both;

    TwoPaths(boolean both) {
      this.both = both;
    }

    @Override
    protected Tensor forward(Tensor... inputs) {
      Tensor y = first.call(inputs[0]);
      return both ? Pointwise.add(y, second.call(inputs[0])) : y;
    }
  }

  @Test
  void gradientsAreAveragedOverTheRanks() {
    LocalWorld.run(
        2,
        rank -> {
          Ddp ddp = Ddp.of(new TwoPaths(true), initDeviceMesh("cpu", dim("dp", 2)));
          Tensor x = Tensor.of(new float[] {1 + rank, 10 * rank}, 1, 2);
          Reductions.sum(ddp.call(x)).backward();
          for (String name : new String[] {"first.weight", "second.weight"}) {
            assertThat(ddp.model().parameter(name).grad().toFloatArray()).containsExactly(1.5f, 5f);
          }
        });
  }

  @Test
  void theFirstRanksParametersAreTaken() {
    LocalWorld.run(
        2,
        rank -> {
          TwoPaths model = new TwoPaths(true);
          Tensor unused =
              model.replaceParameter(
                  "first.weight", Tensor.of(new float[] {7 + rank, 8 + rank}, 1, 2));
          Ddp ddp = Ddp.of(model, initDeviceMesh("cpu", dim("dp", 2)));
          assertThat(ddp.model().parameter("first.weight").toFloatArray()).containsExactly(7, 8);
        });
  }

  /** P27: a parameter that takes no part is named in the same step. */
  @Test
  void unusedParametersAreNamed() {
    assertThatThrownBy(
            () ->
                LocalWorld.run(
                    2,
                    rank -> {
                      Ddp ddp =
                          Ddp.of(new TwoPaths(rank == 1), initDeviceMesh("cpu", dim("dp", 2)));
                      Tensor x = Tensor.of(new float[] {1, 2}, 1, 2);
                      Reductions.sum(ddp.call(x)).backward();
                    }))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("second.weight")
        .hasMessageContaining("rank 0");
  }

  /** What one rank computes with all rows. */
  private static List<float[]> wholeBatch(int layers, int width, int rows) {
    Sequential m = chain(layers, width);
    loss(m.call(rows(0, rows, width))).backward();
    return gradients(m);
  }

  @Test
  void bucketsOfAnySizeGiveTheGradientsOfTheWholeBatch() {
    List<float[]> want = wholeBatch(5, 4, 8);
    for (long bytes : new long[] {1, 100, 1 << 20}) {
      LocalWorld.run(
          4,
          rank -> {
            Sequential m = chain(5, 4);
            Ddp ddp =
                Ddp.of(
                    m,
                    initDeviceMesh("cpu", dim("dp", 4)),
                    DdpOptions.DEFAULT.withBucketBytes(bytes).withFirstBucketBytes(bytes));
            for (int step = 0; step < 3; step++) {
              m.zeroGrad();
              loss(ddp.call(rows(2 * rank, 2 * rank + 2, 4))).backward();
              assertClose(gradients(m), want);
            }
          });
    }
  }

  /** The first bucket is small; later steps take the order in which gradients came. */
  @Test
  void bucketsStartFromTheLastLayerAndAreRebuiltByArrival() {
    LocalWorld.run(
        2,
        rank -> {
          Sequential m = chain(4, 4);
          // Registered first, used last: its gradient comes first.
          Module late =
              new Module() {
                final Linear head = registerModule("head", new Linear(rows(0, 4, 4), null));
                final Sequential body = registerModule("body", m);

                @Override
                protected Tensor forward(Tensor... inputs) {
                  return head.call(body.call(inputs));
                }
              };
          Ddp ddp =
              Ddp.of(
                  late,
                  initDeviceMesh("cpu", dim("dp", 2)),
                  DdpOptions.DEFAULT.withBucketBytes(128).withFirstBucketBytes(64));
          assertThat(ddp.bucketOrder()).containsExactly(List.of(4), List.of(3, 2), List.of(1, 0));
          loss(ddp.call(rows(rank, rank + 1, 4))).backward();
          assertThat(ddp.bucketOrder()).containsExactly(List.of(0), List.of(4, 3), List.of(2, 1));
        });
  }

  @Test
  void reductionsStartWhileBackwardGoesOn() {
    LocalWorld.run(
        2,
        rank -> {
          Sequential m = chain(3, 4);
          List<String> events = new ArrayList<>();
          CommunicationHook noting =
              bucket -> {
                events.add("start " + bucket.index());
                return CommunicationHook.allReduce().start(bucket);
              };
          Ddp ddp =
              Ddp.of(
                  m,
                  initDeviceMesh("cpu", dim("dp", 2)),
                  DdpOptions.DEFAULT.withHook(noting).withBucketBytes(1).withFirstBucketBytes(1));
          Module.Handle unused =
              m.module("1")
                  .forwardHook(
                      (layer, in, out) -> {
                        Autograd.hook(
                            out,
                            g -> {
                              events.add("backward reaches layer 1");
                              return g;
                            });
                        return out;
                      });
          loss(ddp.call(rows(rank, rank + 1, 4))).backward();
          assertThat(events)
              .containsExactly("start 0", "backward reaches layer 1", "start 1", "start 2");
        });
  }

  /** P21 for whole replicas: what was accumulated without averaging counts in full. */
  @Test
  void microbatchesAccumulateBeforeTheyAreAveraged() {
    List<float[]> want = wholeBatch(3, 4, 12);
    LocalWorld.run(
        2,
        rank -> {
          Sequential m = chain(3, 4);
          Ddp ddp = Ddp.of(m, initDeviceMesh("cpu", dim("dp", 2)));
          for (int micro = 0; micro < 3; micro++) {
            int first = 4 * micro + 2 * rank;
            Tensor part = Pointwise.div(loss(ddp.call(rows(first, first + 2, 4))), 3);
            if (micro < 2) {
              try (GradientSync.NoSync open = ddp.noSync()) {
                part.backward();
              }
            } else {
              part.backward();
            }
          }
          assertClose(gradients(m), want);
        });
  }

  /** P27: a branch used on one rank only counts as zero on the other; used nowhere it is left. */
  @Test
  void unusedParametersAreFoundWhereAllowed() {
    LocalWorld.run(
        2,
        rank -> {
          DdpOptions find = DdpOptions.DEFAULT.withFindUnusedParameters(true);
          Tensor x = Tensor.of(new float[] {1, 2}, 1, 2);
          Ddp ddp = Ddp.of(new TwoPaths(rank == 1), initDeviceMesh("cpu", dim("dp", 2)), find);
          Reductions.sum(ddp.call(x)).backward();
          assertThat(ddp.model().parameter("first.weight").grad().toFloatArray())
              .containsExactly(1, 2);
          assertThat(ddp.model().parameter("second.weight").grad().toFloatArray())
              .containsExactly(0.5f, 1);
          Ddp none = Ddp.of(new TwoPaths(false), initDeviceMesh("cpu", dim("dp", 2)), find);
          Reductions.sum(none.call(x)).backward();
          assertThat(none.model().parameter("second.weight").grad()).isNull();
        });
  }

  /** A layer used twice: its bucket must not leave with half of the gradient. P22. */
  @Test
  void aParameterUsedTwiceIsAveragedOnceItIsComplete() {
    LocalWorld.run(
        2,
        rank -> {
          Linear shared = new Linear(Tensor.of(new float[] {0.5f, 1, -1, 2}, 2, 2), null);
          Sequential m = new Sequential(shared, chain(1, 2), shared);
          Sequential alone =
              new Sequential(new Linear(shared.parameter("weight").copy(), null), chain(1, 2));
          Ddp ddp =
              Ddp.of(
                  m,
                  initDeviceMesh("cpu", dim("dp", 2)),
                  DdpOptions.DEFAULT.withBucketBytes(1).withFirstBucketBytes(1));
          for (int step = 0; step < 2; step++) {
            m.zeroGrad();
            alone.zeroGrad();
            loss(ddp.call(rows(rank, rank + 1, 2))).backward();
            Module first = alone.module("0");
            loss(first.call(alone.call(rows(0, 2, 2)))).backward();
            assertClose(gradients(m), gradients(alone));
          }
        });
  }

  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"BFLOAT16", "FLOAT16"})
  void compressedGradientsAreCloseAndEqualOnAllRanks(DType dtype) {
    List<float[]> want = wholeBatch(3, 4, 4);
    List<List<float[]>> got =
        LocalWorld.call(
            2,
            rank -> {
              Sequential m = chain(3, 4);
              Ddp ddp =
                  Ddp.of(
                      m,
                      initDeviceMesh("cpu", dim("dp", 2)),
                      DdpOptions.DEFAULT.withHook(CommunicationHook.compress(dtype)));
              loss(ddp.call(rows(2 * rank, 2 * rank + 2, 4))).backward();
              return gradients(m);
            });
    boolean rounded = false;
    for (int i = 0; i < want.size(); i++) {
      assertThat(got.get(0).get(i)).containsExactly(got.get(1).get(i));
      assertThat(got.get(0).get(i)).containsExactly(want.get(i), offset(1e-3f));
      rounded |= !Arrays.equals(got.get(0).get(i), want.get(i));
    }
    assertThat(rounded).isTrue();
  }

  /** A module with a buffer that forward adds. */
  private static final class Shifted extends Module {
    Shifted(float shift) {
      Tensor unused = registerBuffer("shift", Tensor.of(new float[] {shift}, 1));
      unused = registerParameter("scale", Tensor.of(new float[] {2}, 1));
    }

    @Override
    protected Tensor forward(Tensor... inputs) {
      return Pointwise.add(Pointwise.mul(inputs[0], parameter("scale")), buffer("shift"));
    }
  }

  @Test
  void everyTrainingForwardStartsWithTheFirstRanksBuffers() {
    LocalWorld.run(
        2,
        rank -> {
          Shifted m = new Shifted(rank);
          Ddp ddp = Ddp.of(m, initDeviceMesh("cpu", dim("dp", 2)));
          Tensor x = Tensor.of(new float[] {1}, 1);
          Autograd.noGrad(
              () -> InPlace.copy(m.buffer("shift"), Tensor.of(new float[] {5 + rank}, 1)));
          assertThat(ddp.call(x).toFloatArray()).containsExactly(7);
          Module unused = m.eval();
          Autograd.noGrad(
              () -> InPlace.copy(m.buffer("shift"), Tensor.of(new float[] {5 + rank}, 1)));
          assertThat(ddp.call(x).toFloatArray()).containsExactly(7 + rank);
        });
  }

  /** P27: three batches on one rank and two on the other; nobody hangs, replicas stay equal. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void ranksWithFewerBatchesTakePartUntilAllAreDone(int shorter) {
    Sequential alone = chain(3, 4);
    Sgd alonely = Sgd.over(alone.parameters()).learningRate(0.5).build();
    for (int b = 0; b < 3; b++) {
      Tensor first = loss(alone.call(rows(b, b + 1, 4)));
      Tensor both = b < 2 ? Pointwise.add(first, loss(alone.call(rows(b + 10, b + 11, 4)))) : first;
      Pointwise.div(both, 2).backward();
      alonely.step();
      alonely.zeroGrad();
    }
    LocalWorld.of(2)
        .timeout(Duration.ofMinutes(1))
        .run(
            rank -> {
              Sequential m = chain(3, 4);
              Ddp ddp = Ddp.of(m, initDeviceMesh("cpu", dim("dp", 2)));
              Sgd optimizer = Sgd.over(m.parameters()).learningRate(0.5).build();
              boolean isShort = rank == shorter;
              List<Tensor> batches = new ArrayList<>();
              for (int b = 0; b < (isShort ? 2 : 3); b++) {
                int at = isShort ? b + 10 : b;
                batches.add(rows(at, at + 1, 4));
              }
              ddp.join(
                  batches,
                  x -> {
                    loss(ddp.call(x)).backward();
                    optimizer.step();
                    optimizer.zeroGrad();
                  });
              assertClose(SmallModels.parameters(m), SmallModels.parameters(alone));
            });
  }

  @Test
  void aJoinedStepWithoutABackwardIsRefused() {
    assertThatThrownBy(
            () ->
                LocalWorld.run(
                    1,
                    rank -> {
                      Ddp ddp = Ddp.of(chain(1, 4), initDeviceMesh("cpu", dim("dp", 1)));
                      ddp.join(List.of(1), x -> {});
                    }))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("averaged 0 backwards");
  }

  @Test
  void badOptionsAreRefused() {
    assertThatThrownBy(() -> DdpOptions.DEFAULT.withBucketBytes(0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("bucketBytes is 0");
    assertThatThrownBy(() -> CommunicationHook.compress(DType.FLOAT32))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("float32");
  }
}
