package dev.weft.dtensor.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.tp.Parallelize;
import dev.weft.dtensor.tp.Styles;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.optim.AdamW;
import dev.weft.optim.Optimizer;
import dev.weft.optim.Sgd;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Random;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A run that is stopped, saved and taken up again, on the same or another mesh. */
class TrainingStateTest {
  @TempDir private Path root;

  private static final class Net extends Module {
    private final Linear up;
    private final Linear down;

    Net(boolean tied) {
      up = registerModule("up", new Linear(6, 5, !tied, new Generator(1)));
      down = registerModule("down", new Linear(5, 6, true, new Generator(2)));
      registerBuffer("count", Tensor.of(new float[] {0}, 1));
    }

    @Override
    protected Tensor forward(Tensor... in) {
      return down.call(Activations.relu(up.call(in[0])));
    }
  }

  private static Net model(DeviceMesh mesh) {
    return Parallelize.parallelizeModule(
        new Net(false),
        mesh,
        Map.of("up", Styles.colwise().localOutput(false), "down", Styles.rowwise()));
  }

  private static double step(Net net, Optimizer optimizer, int i) {
    Tensor x = Random.randn(new Generator(100 + i), DType.FLOAT32, 3, 6);
    Tensor loss = net.call(x).mul(net.call(x)).mean();
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss.item();
  }

  private void resumes(Function<Net, Optimizer> make, int from, int to) {
    List<Double> undisturbed =
        LocalWorld.call(
                to,
                rank -> {
                  Net net = model(DeviceMesh.initDeviceMesh("cpu", to));
                  Optimizer o = make.apply(net);
                  List<Double> losses = new ArrayList<>();
                  for (int i = 0; i < 6; i++) {
                    losses.add(step(net, o, i));
                  }
                  return losses;
                })
            .get(0);
    LocalWorld.run(
        from,
        rank -> {
          Net net = model(DeviceMesh.initDeviceMesh("cpu", from));
          Optimizer o = make.apply(net);
          for (int i = 0; i < 3; i++) {
            double unused = step(net, o, i);
          }
          o.learningRate(o.learningRate());
          DTensor.manualSeed(1L << 62);
          Checkpoint unused = Checkpoint.save(root, 3, net, o, Map.of("epoch", 2.0));
        });
    LocalWorld.run(
        to,
        rank -> {
          Net net = model(DeviceMesh.initDeviceMesh("cpu", to));
          Optimizer o = make.apply(net);
          o.learningRate(99);
          Map<String, Double> users = Checkpoint.latest(root).orElseThrow().load(net, o);
          assertThat(users).containsExactly(Map.entry("epoch", 2.0));
          assertThat(o.steps()).isEqualTo(3);
          assertThat(DTensor.generator().seed()).isEqualTo(1L << 62);
          for (int i = 3; i < 6; i++) {
            assertThat(step(net, o, i))
                .isCloseTo(undisturbed.get(i), org.assertj.core.api.Assertions.within(1e-6));
          }
        });
  }

  @Test
  void adamGoesOnOnAnotherMesh() {
    resumes(n -> AdamW.over(n.parameters()).learningRate(0.05).build(), 2, 3);
  }

  @Test
  void momentumGoesOnOnAnotherMesh() {
    resumes(n -> Sgd.over(n.parameters()).learningRate(0.05).momentum(0.9).build(), 3, 1);
  }

  @Test
  void aSavedStateThatWasNeverSteppedIsAFreshOne() {
    resumesFresh();
  }

  private void resumesFresh() {
    LocalWorld.run(
        1,
        rank -> {
          Net net = new Net(false);
          Optimizer o = AdamW.over(net.parameters()).build();
          Checkpoint saved = Checkpoint.save(root, 0, net, o, Map.of());
          assertThat(saved.names())
              .contains("model.up.weight", "model.count", "optimizer.up.weight.exp_avg", "random");
          double loss = step(new Net(false), AdamW.over(new Net(false).parameters()).build(), 0);
          Map<String, Double> unused = saved.load(net, o);
          assertThat(o.steps()).isZero();
          assertThat(step(net, o, 0)).isEqualTo(loss);
        });
  }

  /** P22: a tie survives cutting, saving and loading; the gradient has both uses. */
  @Test
  void tiesSurvive() {
    final class Tied extends Module {
      private final Linear first =
          registerModule("first", new Linear(6, 6, false, new Generator(4)));
      private final Linear second =
          registerModule("second", new Linear(first.parameter("weight"), null));

      @Override
      protected Tensor forward(Tensor... in) {
        return second.call(first.call(in[0]));
      }
    }
    Tensor x = Random.randn(new Generator(5), DType.FLOAT32, 3, 6);
    Tied alone = new Tied();
    alone.call(x).sum().backward();
    Tensor both = alone.parameter("first.weight").grad();
    assertThat(both).isNotNull();
    double[] want = both == null ? new double[0] : both.toDoubleArray();
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2);
          var plan =
              Map.of("first", Styles.colwise().output(dev.weft.dtensor.Placements.replicate()));
          Tied saved = Parallelize.parallelizeModule(new Tied(), mesh, plan);
          Checkpoint.save(root, 1, saved, null, Map.of());
          Tied loaded = Parallelize.parallelizeModule(new Tied(), mesh, plan);
          dev.weft.tensor.autograd.Autograd.noGrad(
              () -> {
                Tensor unused = dev.weft.tensor.op.InPlace.zero(loaded.parameter("first.weight"));
              });
          Checkpoint.latest(root).orElseThrow().load(loaded, null);
          assertThat(loaded.parameter("second.weight")).isSameAs(loaded.parameter("first.weight"));
          Tensor h = loaded.module("first").call(x);
          Tensor y =
              loaded
                  .module("second")
                  .call(DTensor.fromLocal(h, mesh, dev.weft.dtensor.Placements.replicate()));
          y.sum().backward();
          Tensor g = loaded.parameter("first.weight").grad();
          assertThat(g == null ? new double[0] : g.toDoubleArray())
              .containsExactly(want, org.assertj.core.data.Offset.offset(1e-4));
        });
  }

  @Test
  void theModelAloneCanBeLoadedAndWhatDoesNotFitIsNamed() {
    LocalWorld.run(
        1,
        rank -> {
          Net net = new Net(false);
          Optimizer o = AdamW.over(net.parameters()).build();
          Checkpoint saved = Checkpoint.save(root, 0, net, o, Map.of());
          assertThat(saved.load(new Net(false), null)).isEmpty();
          assertThatThrownBy(() -> saved.load(new Net(true), null))
              .isInstanceOf(CheckpointException.class)
              .hasMessageContaining("up.bias");
          Checkpoint bare = Checkpoint.save(root, 1, new Net(true), null, Map.of());
          assertThatThrownBy(() -> bare.load(new Net(false), null))
              .isInstanceOf(CheckpointException.class)
              .hasMessageContaining("lacks tensor 'model.up.bias'");
          assertThatThrownBy(() -> bare.load(net, o))
              .isInstanceOf(CheckpointException.class)
              .hasMessageContaining("optimizer.up.weight.exp_avg");
          assertThatThrownBy(() -> Checkpoint.save(root, 2, net, o, Map.of("optimizer.x", 1.0)))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("optimizer.x");
        });
  }

  @Test
  void anOptimisersStateIsCopiedByName() {
    Net a = new Net(false);
    Net b = new Net(false);
    Optimizer from = AdamW.over(a.parameters()).learningRate(0.1).build();
    double unused = step(a, from, 0);
    Optimizer to = AdamW.over(b.parameters()).build();
    to.loadState(b.namedParameters(), from.state(a.namedParameters()), from.scalars());
    assertThat(to.steps()).isEqualTo(1);
    assertThat(to.learningRate()).isEqualTo(0.1);
    assertThat(to.state(b.namedParameters()).get("down.bias.exp_avg").toFloatArray())
        .isEqualTo(from.state(a.namedParameters()).get("down.bias.exp_avg").toFloatArray());
    Map<String, Tensor> partly = new TreeMap<>(from.state(a.namedParameters()));
    partly.remove("down.bias.exp_avg");
    assertThatThrownBy(() -> to.loadState(b.namedParameters(), partly, from.scalars()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("down.bias.exp_avg");
    assertThatThrownBy(() -> to.loadScalars(Map.of("steps", 1.5, "learningRate", 1.0)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("1.5");
    assertThatThrownBy(() -> to.state(a.namedParameters()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("parameter 0");
  }
}
