package dev.weft.dtensor;

import static dev.weft.dtensor.Placements.partial;
import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.tp.LossParallel;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Extrema;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.MatMul;
import dev.weft.tensor.op.Op;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Statistics;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.api.Test;

/** What users of other systems ran into; the numbers are those of the reports' list. */
class ReportedTroubleTest {
  private static final Op UNRULED =
      Op.function(
              "test.unruled",
              (in, a) -> TensorSpec.one(in[0].shape(), in[0].dtype()),
              (in, out, a) -> dev.weft.tensor.Regions.copy(in[0], out[0]))
          .notDifferentiable();

  private static Tensor numbers(long... shape) {
    float[] values = new float[(int) Shapes.numel(shape)];
    for (int i = 0; i < values.length; i++) {
      values[i] = i * 7 % 11 - 4;
    }
    return Tensor.of(values, shape);
  }

  private static void onLine(int n, Consumer<DeviceMesh> body) {
    LocalWorld.run(n, rank -> body.accept(DeviceMesh.initDeviceMesh("cpu", n)));
  }

  private static DTensor place(Tensor t, DeviceMesh mesh, Placement... placements) {
    return DTensor.distributeTensor(t, mesh, List.of(placements), null);
  }

  private static int collectives(Runnable body) {
    AtomicInteger count = new AtomicInteger();
    try (Dispatcher.Installed installed =
        Dispatcher.install(
            call -> {
              if (call.op().name().startsWith("c10d.")) {
                count.incrementAndGet();
              }
              return call.proceed();
            })) {
      body.run();
    }
    return count.get();
  }

  @Test
  void p01ViewsOfUnevenCutsAreRefusedOnAllRanksAlike() {
    List<String> messages = java.util.Collections.synchronizedList(new ArrayList<>());
    onLine(
        4,
        mesh -> {
          Tensor x = numbers(6, 256);
          DTensor d = place(x, mesh, shard(0));
          assertThatThrownBy(() -> d.reshape(-1))
              .isInstanceOf(IllegalArgumentException.class)
              .satisfies(e -> messages.add(e.getMessage()));
          assertThat(d.redistribute(replicate()).reshape(-1).toFloatArray())
              .isEqualTo(x.toFloatArray());
        });
    assertThat(messages).hasSize(4);
    assertThat(messages.stream().distinct()).hasSize(1);
    assertThat(messages.get(0)).contains("S(0)").contains("redistribute");
  }

  @Test
  void p02LinearOfACutSequenceNeedsNoCommunication() {
    onLine(
        2,
        mesh -> {
          DTensor x = place(numbers(2, 8, 4), mesh, shard(1));
          DTensor w = place(numbers(4, 4), mesh, replicate());
          DTensor[] y = new DTensor[1];
          assertThat(collectives(() -> y[0] = (DTensor) MatMul.linear(x, w, null))).isZero();
          assertThat(y[0].placements()).containsExactly(shard(1));
        });
  }

  @Test
  void p03ReshapeToTheSameShapeKeepsACutOfSizeOne() {
    onLine(
        2,
        mesh -> {
          DTensor x = place(numbers(1, 2), mesh, shard(0));
          DTensor[] y = new DTensor[1];
          assertThat(collectives(() -> y[0] = (DTensor) x.reshape(1, 2))).isZero();
          assertThat(y[0].placements()).containsExactly(shard(0));
        });
  }

  @Test
  void p05AddmmOverNothingIsTheBias() {
    onLine(
        4,
        mesh -> {
          DTensor bias = place(numbers(4), mesh, replicate());
          DTensor a = place(Tensors.empty(DType.FLOAT32, 12, 0), mesh, shard(0));
          DTensor b = place(Tensors.empty(DType.FLOAT32, 0, 4), mesh, replicate());
          float[] got = MatMul.addmm(bias, a, b).toFloatArray();
          float[] row = numbers(4).toFloatArray();
          for (int i = 0; i < got.length; i++) {
            assertThat(got[i]).isEqualTo(row[i % 4]);
          }
        });
  }

  @Test
  void p06ProductsOverNothingAreZero() {
    onLine(
        2,
        mesh -> {
          for (Placement p : List.of(replicate(), shard(0), shard(1))) {
            for (Placement q : List.of(replicate(), shard(0), shard(1))) {
              DTensor a = place(Tensors.empty(DType.FLOAT32, 4, 0), mesh, p);
              DTensor b = place(Tensors.empty(DType.FLOAT32, 0, 3), mesh, q);
              assertThat(MatMul.mm(a, b).toFloatArray()).containsOnly(0).hasSize(12);
            }
          }
        });
  }

  @Test
  void p07ANumberIsAddedOnceToAnOutstandingReduction() {
    onLine(
        2,
        mesh -> {
          Tensor ten = Tensor.of(new float[] {10});
          DTensor x =
              place(Tensor.of(new float[] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 10), mesh, shard(0));
          Tensor sum = x.sum();
          assertThat(((DTensor) sum).placements()).containsExactly(partial());
          assertThat(sum.add(10).item()).isEqualTo(55);
          assertThat(sum.add(ten).item()).isEqualTo(55);
          assertThat(sum.sub(10).item()).isEqualTo(35);
          assertThat(x.mean().add(10).item()).isEqualTo(14.5);
          assertThat(x.max().add(ten).item()).isEqualTo(19);
          assertThat(Pointwise.rsub(Extrema.min(x), 10).item()).isEqualTo(10);
          assertThatThrownBy(() -> InPlace.add(x.sum(), 10))
              .isInstanceOf(IllegalArgumentException.class);
        });
  }

  @Test
  void p08ItemReducesFirst() {
    onLine(
        2,
        mesh ->
            assertThat(
                    place(Tensor.of(new float[] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 10), mesh, shard(0))
                        .sum()
                        .item())
                .isEqualTo(45));
  }

  @Test
  void p09ArgmaxIsGlobalAndTiesGoToTheLowest() {
    onLine(
        2,
        mesh -> {
          DTensor x = place(Tensor.of(new float[] {10, 5, 3, 8}, 4), mesh, shard(0));
          assertThat(Extrema.argmax(x).item()).isEqualTo(0);
          DTensor tie = place(Tensor.of(new float[] {1, 9, 9, 9}, 4), mesh, shard(0));
          assertThat(Extrema.argmax(tie).item()).isEqualTo(1);
          assertThat(Extrema.argmax(tie, 0, true).item()).isEqualTo(1);
        });
  }

  @Test
  void p10NonlinearReductionsSettleSumsFirst() {
    onLine(
        2,
        mesh -> {
          float[] mine = mesh.getLocalRank() == 0 ? new float[] {1, -3} : new float[] {-2, 4};
          DTensor x = DTensor.fromLocal(Tensor.of(mine, 2), mesh, partial());
          assertThat(x.max().item()).isEqualTo(1);
          assertThat(Statistics.vectorNorm(x, 2, new int[0], false).item())
              .isCloseTo(Math.sqrt(2), within(1e-6));
        });
  }

  @Test
  void p12TheGradientOfAContributionIsUndivided() {
    onLine(
        2,
        mesh -> {
          Tensor leaf = numbers(3).requiresGrad(true);
          DTensor x = DTensor.fromLocal(leaf, mesh, partial());
          x.redistribute(replicate()).sum().backward();
          Tensor g = leaf.grad();
          assertThat(g == null ? new float[0] : g.toFloatArray()).containsExactly(1, 1, 1);
        });
  }

  @Property(tries = 12)
  void p14UnevenNestedAndStridedCutsComeBackWhole(
      @ForAll @IntRange(min = 1, max = 9) int size, @ForAll @IntRange(min = 2, max = 3) int inner) {
    LocalWorld.run(
        2 * inner,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2, inner);
          Tensor x = numbers(size, 2);
          for (List<Placement> p :
              List.of(
                  List.of(shard(0), shard(0)),
                  List.<Placement>of(new StridedShard(0, inner), shard(0)),
                  List.of(shard(1), shard(0)))) {
            assertThat(DTensor.distributeTensor(x, mesh, p, null).fullTensor().toFloatArray())
                .as("%s of %s", p, size)
                .isEqualTo(x.toFloatArray());
          }
        });
  }

  @Test
  void p15WritesAlongAWholeDimensionKeepTheCut() {
    onLine(
        2,
        mesh -> {
          DTensor x = place(numbers(2, 4, 3), mesh, shard(1));
          Tensor unused = InPlace.fill(x.select(2, 1), 5);
          assertThat(x.placements()).containsExactly(shard(1));
          assertThat(x.select(2, 1).toFloatArray()).containsOnly(5);
        });
  }

  @Test
  void p16APlainTensorBesideADistributedOneIsNamed() {
    onLine(
        2,
        mesh -> {
          DTensor x = place(numbers(2, 3), mesh, shard(0));
          assertThatThrownBy(() -> x.add(numbers(2, 3)))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("add")
              .hasMessageContaining("distributeTensor");
          assertThat(x.add(Tensor.of(new float[] {1})).toFloatArray()[0]).isEqualTo(-3);
        });
  }

  @Test
  void p17AnOperatorWithoutARuleSaysHowToAddOne() {
    onLine(
        2,
        mesh ->
            assertThatThrownBy(
                    () ->
                        Dispatcher.call(UNRULED, Attrs.NONE, place(numbers(2, 3), mesh, shard(0))))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContaining("test.unruled")
                .hasMessageContaining("S(0)")
                .hasMessageContaining("Sharding.register"));
  }

  @Test
  void p23CutClassesGiveTheSameLossWithSmoothingAndIgnoredTargets() {
    Tensor logits = numbers(4, 5);
    Tensor target = Tensor.of(new long[] {0, 4, 2, 1}, 4);
    Supplier<Tensor> dense = () -> loss(logits.detach().requiresGrad(true), target);
    double want = dense.get().item();
    for (int n : new int[] {2, 3}) {
      onLine(
          n,
          mesh -> {
            DTensor x = (DTensor) place(logits, mesh, shard(1)).requiresGrad(true);
            DTensor t = place(target, mesh, replicate());
            int[] backward = new int[1];
            int forward =
                collectives(
                    () -> {
                      Tensor loss = LossParallel.with(() -> loss(x, t));
                      assertThat(loss.item()).isCloseTo(want, within(1e-5));
                      backward[0] = collectives(loss::backward);
                    });
            assertThat(forward).isEqualTo(3);
            assertThat(backward[0]).isZero();
            Tensor whole = logits.detach().requiresGrad(true);
            loss(whole, target).backward();
            Tensor g = x.grad();
            Tensor w = whole.grad();
            assertThat(g != null && w != null).isTrue();
            if (g != null && w != null) {
              double[] a = Casts.to(g, DType.FLOAT64).toDoubleArray();
              double[] b = w.toDoubleArray();
              for (int i = 0; i < b.length; i++) {
                assertThat(a[i]).isCloseTo(b[i], within(1e-5));
              }
            }
          });
    }
  }

  private static Tensor loss(Tensor logits, Tensor target) {
    return Losses.crossEntropy(logits, target, "mean", 2, 0.1);
  }

  @Test
  void p24MeansCountTargetsOfAllRanks() {
    Tensor logits = numbers(4, 3);
    Tensor target = Tensor.of(new long[] {0, -100, -100, 1}, 4);
    double want = Losses.crossEntropy(logits, target).item();
    onLine(
        2,
        mesh ->
            assertThat(
                    Losses.crossEntropy(
                            place(logits, mesh, shard(0)), place(target, mesh, shard(0)))
                        .item())
                .isCloseTo(want, within(1e-6)));
  }
}
