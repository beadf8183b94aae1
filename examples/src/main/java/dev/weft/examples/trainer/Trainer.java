package dev.weft.examples.trainer;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.examples.reference.DecoderConfig;
import dev.weft.mesh.DeviceMesh;
import dev.weft.optim.AdamW;
import dev.weft.optim.Clipping;
import dev.weft.optim.Schedule;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.InPlace;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One rank's share of training: its rows, its part of the model, its optimiser. Used by the thread
 * that acts for the rank; all ranks call alike.
 */
final class Trainer implements AutoCloseable {
  private final TrainOptions options;
  private final ParallelDims dims;
  private final DeviceMesh mesh;
  private final TokenBatches training;
  private final @Nullable TokenBatches heldOut;
  private final ParallelModel model;
  private final Evaluation evaluation;
  private final HealthChecks health;
  private final AdamW optimizer;
  private final Schedule rates;
  private final DecoderConfig config;
  private final Map<String, Double> identity;
  private final long parameterCount;

  Trainer(TrainOptions options) {
    this.options = options;
    this.dims = options.dims(Distributed.worldSize());
    this.mesh = dims.mesh(options.parallel.device);
    TokenSource tokens = options.data.tokens();
    this.config = options.config(tokens);
    this.training = options.data.training(tokens);
    this.heldOut =
        options.evaluates()
            ? options.data.evaluation(
                tokens, (long) options.run.evalBatches * options.optimizer.batch)
            : null;
    this.model = new ParallelModel(config, dims, mesh, options.parallel);
    this.evaluation = new Evaluation(model, config, mesh, options.parallel);
    this.health = new HealthChecks(options.health, options.run.logEvery, model, mesh);
    this.optimizer = options.optimizer.over(model.parameters());
    this.rates = options.optimizer.schedule();
    this.identity = TrainingCheckpoint.identity(config, options.data, tokens);
    this.parameterCount = parametersOverWorld();
  }

  /** What a checkpoint must have in common with this run. */
  Map<String, Double> identity() {
    return identity;
  }

  HealthChecks health() {
    return health;
  }

  /** Of the whole model; tied ones count once. */
  long parameterCount() {
    return parameterCount;
  }

  ParallelModel model() {
    return model;
  }

  AdamW optimizer() {
    return optimizer;
  }

  private int rows() {
    return options.optimizer.batch / dims.replicas();
  }

  /** Where this rank's rows begin in a batch. */
  private int firstRow() {
    int replica = mesh.getLocalRank("dp") * dims.fsdp() + mesh.getLocalRank("fsdp");
    return replica * rows();
  }

  /**
   * One update.
   *
   * @param step from 0
   * @param samples that were taken before it
   * @throws IllegalStateException on all ranks if loss or gradient are not finite; parameters are
   *     as before then
   */
  LossRow step(long step, long samples) {
    long started = System.nanoTime();
    try (TensorScope scope = TensorScope.open()) {
      TokenBatches.Batch batch = training.rows(samples + firstRow(), rows());
      Tensor loss =
          model.step(
              batch.inputs().to(options.parallel.device()),
              batch.targets().to(options.parallel.device()));
      health.beforeUpdate(step + 1);
      double[] sums = overWorld(lossShare(loss == null ? null : loss.item()), squaresShare());
      double norm = Math.sqrt(sums[1]);
      if (!Double.isFinite(sums[0]) || !Double.isFinite(norm)) {
        throw new IllegalStateException(
            "step %d: the loss is %s and the norm of the gradient %s; expected finite numbers"
                .formatted(step + 1, sums[0], norm));
      }
      clip(norm);
      optimizer.learningRate(rates.at(step));
      optimizer.step();
      optimizer.zeroGrad();
      long taken = samples + options.optimizer.batch;
      double seconds = (System.nanoTime() - started) * 1e-9;
      return new LossRow(
          step + 1,
          taken * config.seq(),
          sums[0],
          norm,
          optimizer.learningRate(),
          (double) options.optimizer.batch * config.seq() / seconds,
          null);
    }
  }

  /** This rank's part of the mean over replicas: tensor-parallel ranks have the same loss. */
  private double lossShare(@Nullable Double loss) {
    return loss == null || mesh.getLocalRank("tp") > 0 ? 0 : loss / dims.replicas();
  }

  /**
   * The squares of the gradients of this rank's stages, each counted by one rank of the world.
   * {@code Clipping} adds up what lies on other ranks of fsdp and tp.
   */
  private double squaresShare() {
    double norm = Clipping.gradNorm(model.parameters());
    boolean first =
        mesh.getLocalRank("dp") == 0
            && mesh.getLocalRank("fsdp") == 0
            && mesh.getLocalRank("tp") == 0;
    return first ? norm * norm : 0;
  }

  private long parametersOverWorld() {
    double own = 0;
    for (Tensor p : model.parameters()) {
      own += p.numel();
    }
    int holders = dims.replicas() * dims.tp();
    try (TensorScope scope = TensorScope.open()) {
      return Math.round(overWorld(own / holders)[0]);
    }
  }

  private static double[] overWorld(double... shares) {
    ProcessGroup world = Distributed.world();
    Tensor sum = Tensor.of(shares, shares.length).to(world.controlDevice());
    Work unused = world.allReduce(sum, ReduceOp.SUM);
    return sum.toDoubleArray();
  }

  /** As {@code Clipping.clipGradNorm}, with a norm that is over all stages, too. */
  private void clip(double norm) {
    float scale = (float) Math.min(1, options.optimizer.clip / (norm + 1e-6));
    if (scale < 1) {
      Autograd.noGrad(
          () -> {
            for (Tensor p : model.parameters()) {
              Tensor g = p.grad();
              if (g != null) {
                Tensor unused = InPlace.mul(g, scale);
              }
            }
          });
    }
  }

  /** The mean loss over the held-out batches; null where there are none. */
  @Nullable Double evaluate() {
    TokenBatches batches = heldOut;
    if (batches == null) {
      return null;
    }
    double share = 0;
    int count = options.run.evalBatches;
    for (int b = 0; b < count; b++) {
      long first = (long) b * options.optimizer.batch + firstRow();
      try (TensorScope scope = TensorScope.open()) {
        share += lossShare(evaluation.loss(batches.rows(first, rows()))) / count;
      }
    }
    try (TensorScope scope = TensorScope.open()) {
      return overWorld(share)[0];
    }
  }

  @Override
  public void close() {
    health.close();
    optimizer.close();
  }
}
