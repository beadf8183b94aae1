package dev.weft.examples.elastic;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.c10d.World;
import dev.weft.dtensor.checkpoint.Checkpoint;
import dev.weft.examples.reference.ClassBatches;
import dev.weft.examples.reference.Mlp;
import dev.weft.examples.reference.MlpConfig;
import dev.weft.mesh.DeviceMesh;
import dev.weft.optim.Sgd;
import dev.weft.parallel.Ddp;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Losses;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;

/**
 * Data-parallel training that goes on after a rank, or a node, was lost:
 *
 * <pre>{@code
 * weft run --nnodes 1:2 --rdzv-endpoint HOST:29400 --rdzv-id mlp --max-restarts 3 \
 *     --nproc-per-node 2 dev.weft.examples.elastic.ElasticTraining FOLDER STEPS EVERY
 * }</pre>
 *
 * <p>Every {@code EVERY} steps the ranks save a checkpoint in {@code FOLDER}; whoever is rank 0
 * after a restart must find it there. All of the batch is split over whatever ranks there are, so
 * the losses do not depend on their number but for rounding.
 */
public final class ElasticTraining {
  private static final int KEPT = 2;

  private ElasticTraining() {}

  /** Runs one rank; arguments: folder, steps, steps from checkpoint to checkpoint. */
  public static void main(String[] args) {
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
  static double train(Path folder, int steps, int every) {
    MlpConfig config = MlpConfig.reference();
    DeviceMesh mesh = initDeviceMesh("cpu", dim("dp", Distributed.worldSize()));
    if (config.batch() % mesh.size() != 0) {
      throw new IllegalArgumentException(
          mesh.size() + " ranks; expected a divisor of the batch of " + config.batch() + " rows");
    }
    Mlp model = new Mlp(config);
    int first = restore(folder, model);
    Ddp ddp = Ddp.of(model, mesh); // all ranks take rank 0's parameters
    ClassBatches batches = new ClassBatches(config);
    int rows = config.batch() / mesh.size();
    int from = Distributed.rank() * rows;
    double last = Double.NaN;
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
        if ((step + 1) % every == 0) {
          Checkpoint.save(folder, step + 1, model, optimizer, Map.of());
          if (Distributed.rank() == 0) {
            Checkpoint.keepNewest(folder, KEPT);
            System.out.printf(Locale.ROOT, "step %d loss %.6f, saved%n", step + 1, last);
          }
        }
      }
    } finally {
      optimizer.close();
    }
    return last;
  }

  /** Rank 0 reads the last checkpoint; all ranks learn which step comes next. */
  private static int restore(Path folder, Mlp model) {
    try (TensorScope scope = TensorScope.open()) {
      Tensor steps = Tensor.of(new long[] {0});
      if (Distributed.rank() == 0) {
        var latest =
            Checkpoint.latestIntact(
                folder, e -> System.err.println("passed over: " + e.getMessage()));
        if (latest.isPresent()) {
          // Without momentum the parameters are all that matters; the others get them from rank 0.
          latest.get().load(model, null);
          steps = Tensor.of(new long[] {latest.get().step()});
          System.out.printf("resumed after step %d%n", latest.get().step());
        }
      }
      Work unused = Distributed.broadcast(steps, 0);
      return Math.toIntExact(steps.toLongArray()[0]);
    }
  }
}
