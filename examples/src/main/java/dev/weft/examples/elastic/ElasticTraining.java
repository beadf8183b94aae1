package dev.weft.examples.elastic;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.c10d.World;
import dev.weft.examples.reference.ClassBatches;
import dev.weft.examples.reference.Mlp;
import dev.weft.examples.reference.MlpConfig;
import dev.weft.mesh.DeviceMesh;
import dev.weft.optim.Sgd;
import dev.weft.parallel.Ddp;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Losses;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Locale;

/**
 * Data-parallel training that goes on after a rank, or a node, was lost:
 *
 * <pre>{@code
 * weft run --nnodes 1:2 --rdzv-endpoint HOST:29400 --rdzv-id mlp --max-restarts 3 \
 *     --nproc-per-node 2 dev.weft.examples.elastic.ElasticTraining FOLDER STEPS EVERY
 * }</pre>
 *
 * <p>Every {@code EVERY} steps rank 0 saves a checkpoint in {@code FOLDER}; whoever is rank 0 after
 * a restart must find it there. All of the batch is split over whatever ranks there are, so the
 * losses do not depend on their number but for rounding.
 */
public final class ElasticTraining {
  private ElasticTraining() {}

  /** Runs one rank; arguments: folder, steps, steps from checkpoint to checkpoint. */
  public static void main(String[] args) throws IOException {
    if (args.length != 3) {
      throw new IllegalArgumentException(args.length + " arguments; expected FOLDER STEPS EVERY");
    }
    try (World world = Distributed.init()) {
      double loss = train(Path.of(args[0]), number("STEPS", args[1]), number("EVERY", args[2]));
      if (world.rank() == 0) {
        System.out.printf(Locale.ROOT, "done: loss %.6f%n", loss);
      }
    }
  }

  private static int number(String name, String text) {
    int value;
    try {
      value = Integer.parseInt(text);
    } catch (NumberFormatException e) {
      value = 0;
    }
    if (value < 1) {
      throw new IllegalArgumentException(name + " is '" + text + "'; expected 1 or more");
    }
    return value;
  }

  /**
   * Trains on the calling rank.
   *
   * @return the loss of the last step, the same on all ranks
   */
  static double train(Path folder, int steps, int every) throws IOException {
    MlpConfig config = MlpConfig.reference();
    DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", Distributed.worldSize()));
    if (config.batch() % mesh.size() != 0) {
      throw new IllegalArgumentException(
          mesh.size() + " ranks; expected a divisor of the batch of " + config.batch() + " rows");
    }
    Checkpoints checkpoints = new Checkpoints(folder);
    Mlp model = new Mlp(config);
    int first = restore(checkpoints, model);
    Ddp ddp = Ddp.of(model, mesh); // all ranks take rank 0's parameters
    ClassBatches batches = new ClassBatches(config);
    int rows = config.batch() / mesh.size();
    int from = Distributed.rank() * rows;
    double last = Double.NaN;
    // Without momentum the parameters are all there is to save.
    Sgd optimizer = Sgd.over(model.parameters()).learningRate(config.lr()).build();
    try {
      for (int step = first; step < steps; step++) {
        try (TensorScope scope = TensorScope.open()) {
          ClassBatches.Batch batch = batches.rows(step, from, from + rows);
          Tensor loss = Losses.crossEntropy(ddp.call(batch.inputs()), batch.labels());
          loss.backward();
          optimizer.step();
          optimizer.zeroGrad();
          Tensor mean = loss.detach();
          Work unused = mesh.getGroup().allReduce(mean, ReduceOp.AVG);
          last = mean.item();
        }
        if ((step + 1) % every == 0 && Distributed.rank() == 0) {
          checkpoints.save(step + 1, model.namedParameters());
          System.out.printf(Locale.ROOT, "step %d loss %.6f, saved%n", step + 1, last);
        }
      }
    } finally {
      optimizer.close();
    }
    return last;
  }

  /** Rank 0 reads the last checkpoint; all ranks learn which step comes next. */
  private static int restore(Checkpoints checkpoints, Mlp model) throws IOException {
    try (TensorScope scope = TensorScope.open()) {
      Tensor steps = Tensor.of(new long[] {0});
      if (Distributed.rank() == 0) {
        var latest = checkpoints.latest();
        if (latest.isPresent()) {
          latest.get().copyTo(model.namedParameters());
          steps = Tensor.of(new long[] {latest.get().steps()});
          System.out.printf("resumed after step %d%n", latest.get().steps());
        }
      }
      Work unused = Distributed.broadcast(steps, 0);
      return Math.toIntExact(steps.toLongArray()[0]);
    }
  }
}
