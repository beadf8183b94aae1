package dev.weft.examples.guide;

import static dev.weft.dtensor.DTensor.distributeTensor;
import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;
import static dev.weft.dtensor.tp.Parallelize.parallelizeModule;
import static dev.weft.dtensor.tp.Styles.colwise;
import static dev.weft.dtensor.tp.Styles.experts;
import static dev.weft.dtensor.tp.Styles.prepareInput;
import static dev.weft.dtensor.tp.Styles.rowwise;
import static dev.weft.dtensor.tp.Styles.sequence;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.Distributed;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.DTensorFactories;
import dev.weft.dtensor.tp.ContextParallel;
import dev.weft.dtensor.tp.LossParallel;
import dev.weft.dtensor.tp.MixtureOfExperts;
import dev.weft.dtensor.tp.ParallelStyle;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.nn.RmsNorm;
import dev.weft.optim.AdamW;
import dev.weft.optim.Clipping;
import dev.weft.profiler.CommDebug;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Gated;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Random;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The programs of the chapter on tensor parallelism. */
final class TensorParallelGuide {
  private TensorParallelGuide() {}

  /** A norm and two layers. */
  static final class Mlp extends Module {
    Mlp() {
      Generator generator = new Generator(1);
      registerModule("norm", new RmsNorm(8, 1e-6));
      registerModule("up", new Linear(8, 32, true, generator));
      registerModule("down", new Linear(32, 8, true, generator));
    }

    @Override
    protected Tensor forward(Tensor... inputs) {
      Tensor h = module("up").call(module("norm").call(inputs));
      return module("down").call(Activations.silu(h));
    }
  }

  @Ranks(4)
  static void styles() {
    var mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 2));
    var model =
        parallelizeModule(new Mlp(), mesh.get("tp"), Map.of("up", colwise(), "down", rowwise()));
    var optimizer = AdamW.over(model.parameters()).learningRate(0.01).build();
    try (var scope = TensorScope.open()) {
      Tensor x = Random.randn(new Generator(2), DType.FLOAT32, 4, 8);
      Tensor loss = Losses.mseLoss(model.call(x), x, "mean");
      loss.backward();
      double norm = Clipping.clipGradNorm(model.parameters(), 1.0); // over all ranks
      optimizer.step();
      optimizer.zeroGrad();
      if (Distributed.rank() == 0) {
        System.out.println(((DTensor) model.parameter("up.weight")).placements());
        System.out.printf("loss %.4f, norm %.4f%n", loss.item(), norm);
      }
    }
  }

  /** Two layers that read the same input, and one that joins them. */
  static final class GatedMlp extends Module {
    GatedMlp() {
      Generator generator = new Generator(1);
      registerModule("gate", new Linear(8, 32, false, generator));
      registerModule("up", new Linear(8, 32, false, generator));
      registerModule("down", new Linear(32, 8, false, generator));
    }

    @Override
    protected Tensor forward(Tensor... inputs) {
      Tensor gate = module("gate").call(inputs);
      return module("down").call(Gated.swiglu(gate, module("up").call(inputs)));
    }
  }

  @Ranks(2)
  static void sameInput() {
    var mesh = initDeviceMesh("cpu", dim("tp", 2));
    var plan = new LinkedHashMap<String, ParallelStyle>();
    plan.put("gate", colwise());
    plan.put("up", colwise());
    plan.put("down", rowwise());
    countBackward(parallelizeModule(new GatedMlp(), mesh, plan));
    plan.put("", prepareInput(replicate(), replicate())); // the module itself
    countBackward(parallelizeModule(new GatedMlp(), mesh, plan));
  }

  private static void countBackward(Module model) {
    Tensor x = Random.randn(new Generator(2), DType.FLOAT32, 4, 8);
    x.requiresGrad(true);
    Tensor loss = Losses.mseLoss(model.call(x), x, "mean");
    try (CommDebug comm = CommDebug.of(model)) {
      loss.backward();
      if (Distributed.rank() == 0) {
        System.out.println("backward " + comm.counts());
      }
    }
  }

  @Ranks(2)
  static void sequences() {
    var mesh = initDeviceMesh("cpu", dim("tp", 2));
    var model =
        parallelizeModule(
            new Mlp(),
            mesh,
            Map.of(
                "norm", sequence(),
                "up", colwise().input(shard(1)),
                "down", rowwise().output(shard(1)).localOutput(false)));
    Tensor x = Random.randn(new Generator(2), DType.FLOAT32, 1, 6, 8);
    DTensor y = (DTensor) model.call(distributeTensor(x, mesh, shard(1)));
    if (Distributed.rank() == 0) {
      System.out.println(y.placements());
    }
  }

  @Ranks(2)
  static void classes() {
    var mesh = initDeviceMesh("cpu", dim("tp", 2));
    DTensor logits = DTensorFactories.zeros(mesh, List.of(shard(1)), DType.FLOAT32, 4, 10);
    Tensor targets = distributeTensor(Tensor.of(new long[] {0, 9, 3, 7}), mesh, replicate());
    Tensor loss = LossParallel.with(() -> Losses.crossEntropy(logits, targets));
    double value = loss.item();
    if (Distributed.rank() == 0) {
      System.out.printf("%.4f%n", value); // ln 10
    }
  }

  @Ranks(4)
  static void contexts() {
    var mesh = initDeviceMesh("cpu", dim("cp", 4));
    int n = mesh.size();
    Tensor q = Random.randn(new Generator(1), DType.FLOAT32, 1, 2, 16, 8); // batch, heads, ...
    var cut = distributeTensor(ContextParallel.zigzag(q, 2, n), mesh, shard(2));
    DTensor out = ContextParallel.attention(cut, cut, cut, true, ContextParallel.Order.ZIGZAG);
    Tensor inOrder = ContextParallel.unzigzag(out.fullTensor(), 2, n);
    if (Distributed.rank() == 0) {
      System.out.println(out.placements() + " " + inOrder.describe());
    }
  }

  @Ranks(2)
  static void mixtures() {
    var mesh = initDeviceMesh("cpu", dim("ep", 2));
    var layer = new MixtureOfExperts(8, 16, 4, 2, new Generator(1));
    var spread = parallelizeModule(layer, mesh, Map.of("", experts()));
    Tensor tokens = Random.randn(new Generator(Distributed.rank()), DType.FLOAT32, 5, 8);
    Tensor y = spread.call(tokens); // each rank's own tokens, through experts of both
    if (Distributed.rank() == 0) {
      System.out.println(y.describe());
    }
  }
}
