package dev.weft.examples;

import static dev.weft.dtensor.DTensor.distributeTensor;
import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;
import static dev.weft.dtensor.tp.Parallelize.parallelizeModule;
import static dev.weft.dtensor.tp.Styles.colwise;
import static dev.weft.dtensor.tp.Styles.rowwise;
import static dev.weft.funcol.FunctionalCollectives.allGatherTensorAutograd;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.World;
import dev.weft.examples.reference.Gpt;
import dev.weft.examples.reference.GptConfig;
import dev.weft.examples.reference.TextBatches;
import dev.weft.optim.AdamW;
import dev.weft.parallel.Ddp;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.MatMul;
import dev.weft.tensor.op.Views;
import java.util.Map;
import org.nd4j.linalg.api.ndarray.INDArray;
import org.nd4j.linalg.factory.Nd4j;

/**
 * The program of the README: data-parallel by tensor-parallel training on a 2 x 2 mesh, and single
 * tensors placed by hand. {@code weft run --nproc-per-node 4 dev.weft.examples.HybridTraining} runs
 * it on processes; with the argument {@code threads} it runs on threads of one JVM.
 */
public final class HybridTraining {
  private HybridTraining() {}

  /** Runs it. */
  public static void main(String[] args) {
    if (args.length > 0 && args[0].equals("threads")) {
      LocalWorld.run(4, rank -> train()); // the same program, four ranks, one debugger
      return;
    }
    try (World world = Distributed.init()) { // env:// under `weft run`
      train();
    }
  }

  static void train() {
    var mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 2));
    var config = GptConfig.reference();
    var model = new Gpt(config);
    parallelizeModule(
        model,
        mesh.get("tp"),
        Map.of(
            "layers.*.attn.w[qkv]", colwise(),
            "layers.*.attn.wo", rowwise(),
            "layers.*.ffn.w[13]", colwise(),
            "layers.*.ffn.w2", rowwise()));
    var ddp = Ddp.of(model, mesh.get("dp"));
    var optimizer = AdamW.over(model.parameters()).learningRate(3e-3).build();
    var batches = new TextBatches(TextBatches.corpus(), config);
    int rows = config.batch() / mesh.size("dp");
    int first = mesh.coordinate(0) * rows;
    for (int step = 0; step < 5; step++) {
      try (var scope = TensorScope.open()) { // native memory made in the step ends with it
        var batch = batches.rows(step, first, first + rows);
        Tensor logits = ddp.call(batch.inputs());
        Tensor loss =
            Losses.crossEntropy(
                Views.reshape(logits, -1, config.vocab()), Views.reshape(batch.targets(), -1));
        loss.backward();
        optimizer.step();
        optimizer.zeroGrad();
        if (Distributed.rank() == 0) {
          System.out.printf("step %d loss %.4f%n", step, loss.item());
        }
      }
    }

    INDArray array = Nd4j.createFromArray(new float[][] {{1, 2}, {3, 4}, {5, 6}, {7, 8}});
    var w =
        distributeTensor(Tensor.of(array), mesh, replicate(), shard(0)); // an ND4J array, placed
    var full = allGatherTensorAutograd(w.toLocal(), 0, mesh.getGroup("tp")); // returns at once
    var y = MatMul.matmul(full, Tensor.of(new float[] {1, 1}, 2)); // awaited here
    if (Distributed.rank() == 0) {
      System.out.println(y);
    }
  }
}
