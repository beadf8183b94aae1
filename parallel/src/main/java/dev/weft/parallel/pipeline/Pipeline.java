package dev.weft.parallel.pipeline;

import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Module;
import dev.weft.parallel.GradientSync;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Pointwise;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Runs the stages of a model that lie on the ranks of a mesh dimension. A step cuts the batch into
 * microbatches, runs them forward and backward as the schedule says, and leaves the gradients of
 * the mean loss in the parameters. Used by the thread that acts for a rank; all ranks of the
 * dimension step alike.
 *
 * <p>Stage s lies on rank s modulo the number of ranks. Stages pass one plain tensor on, of the
 * same shape and dtype in every microbatch; they tell each other which in the first step. Sends and
 * receives are posted and never block, so that ranks cannot wait for each other in a circle.
 */
public final class Pipeline {
  // How many actions ahead a rank asks for the message that the action starts with.
  private static final int AHEAD = 2;

  private final int rank;
  private final int ranks;
  private final List<Module> modules;
  private final List<@Nullable GradientSync> syncs = new ArrayList<>();
  private final int microbatches;
  private final Loss loss;
  private final List<Action> actions;
  private final Timeline timeline;
  private final Messages messages;
  private final Map<Action, Pass> passes = new HashMap<>();
  // Between stages of one rank, where there is only one.
  private final Map<Action, Tensor> handed = new HashMap<>();

  /** A forward that waits for its backward. */
  private record Pass(Tensor input, Tensor output, boolean closeOutput) {}

  private Pipeline(
      DeviceMesh mesh, List<Module> modules, Schedule schedule, int microbatches, Loss loss) {
    this.rank = mesh.getLocalRank();
    this.ranks = mesh.size();
    this.modules = List.copyOf(modules);
    modules.forEach(m -> syncs.add(null));
    this.microbatches = microbatches;
    this.loss = loss;
    this.timeline = schedule.timeline(ranks, modules.size(), microbatches);
    this.actions = schedule.actions(rank, ranks, modules.size(), microbatches);
    this.messages = new Messages(mesh, device(mesh, modules), microbatches);
  }

  /**
   * A pipeline over a mesh dimension.
   *
   * @param mesh one dimension; take it from a larger mesh with {@code mesh.get("pp")}
   * @param stages this rank's, in order: stage {@code rank}, stage {@code rank + ranks}, ...; as
   *     many on every rank
   * @param microbatches in how many a batch is cut; the batch must divide
   * @param loss used on the last stage
   * @throws IllegalArgumentException if the schedule cannot run with these numbers
   */
  public static Pipeline of(
      DeviceMesh mesh, List<Module> stages, Schedule schedule, int microbatches, Loss loss) {
    if (mesh.ndim() != 1) {
      throw new IllegalArgumentException(
          "Pipeline.of: mesh " + mesh + " has " + mesh.ndim() + " dimensions; expected 1");
    }
    return new Pipeline(mesh, stages, schedule, microbatches, loss);
  }

  private static Device device(DeviceMesh mesh, List<Module> modules) {
    for (Module m : modules) {
      for (Tensor p : m.parameters()) {
        return p.device();
      }
    }
    return mesh.deviceType().equals("cuda") ? Device.cuda(Cuda.currentDevice()) : Device.CPU;
  }

  /**
   * Has what averages a stage's gradients over other ranks do so once a step, in the stage's last
   * backward.
   *
   * @param stage position among this rank's stages
   */
  public Pipeline withSync(int stage, GradientSync sync) {
    syncs.set(stage, sync);
    return this;
  }

  /** What the schedule looks like. */
  public Timeline timeline() {
    return timeline;
  }

  private int stages() {
    return ranks * modules.size();
  }

  /** Whether this rank has the first stage, which reads the input. */
  public boolean isFirst() {
    return rank == 0;
  }

  /** Whether this rank has the last stage, which reads the target and knows the loss. */
  public boolean isLast() {
    return rank == ranks - 1;
  }

  /**
   * Runs all microbatches of a batch forward and backward.
   *
   * @param input [batch, ...]; read by the first stage, else it may be null
   * @param target [batch, ...]; read by the last stage, else it may be null
   * @return the mean of the microbatches' losses on the rank with the last stage, null elsewhere
   * @throws IllegalArgumentException if the number of microbatches does not divide the batch
   */
  public @Nullable Tensor step(@Nullable Tensor input, @Nullable Tensor target) {
    List<Tensor> inputs = isFirst() ? cut("input", input) : List.of();
    List<Tensor> targets = isLast() ? cut("target", target) : List.of();
    @Nullable Tensor total = null;
    try {
      for (int k = 0; k < actions.size(); k++) {
        for (int ahead = k; ahead < Math.min(k + AHEAD, actions.size()); ahead++) {
          if (ranks > 1) {
            messages.post(actions.get(ahead), stages());
          }
        }
        Action a = actions.get(k);
        if (!a.isForward()) {
          backward(a);
          continue;
        }
        Tensor output = forward(a, inputs, targets);
        if (a.stage() == stages() - 1) {
          Tensor part = output.detach();
          Tensor before = total;
          total = Autograd.noGrad(() -> before == null ? part.copy() : Pointwise.add(before, part));
        }
      }
      messages.finish();
    } finally {
      passes.clear();
      handed.clear();
    }
    return total;
  }

  private List<Tensor> cut(String what, @Nullable Tensor batch) {
    if (batch == null) {
      throw new IllegalArgumentException(
          "Pipeline.step: "
              + what
              + " is null on rank "
              + rank
              + " of the pipeline, which reads it");
    }
    long rows = batch.size(0);
    if (rows % microbatches != 0 || rows == 0) {
      throw new IllegalArgumentException(
          "Pipeline.step: "
              + what
              + " has "
              + rows
              + " rows; expected a multiple of the "
              + microbatches
              + " microbatches");
    }
    long each = rows / microbatches;
    List<Tensor> parts = new ArrayList<>();
    for (int m = 0; m < microbatches; m++) {
      parts.add(batch.slice(0, m * each, (m + 1) * each));
    }
    return parts;
  }

  private Module module(Action a) {
    return modules.get(a.stage() / ranks);
  }

  private Tensor forward(Action a, List<Tensor> inputs, List<Tensor> targets) {
    Tensor x;
    if (a.stage() == 0) {
      x = inputs.get(a.microbatch());
    } else {
      x = ranks == 1 ? Objects.requireNonNull(handed.remove(a)) : messages.activation(a);
      if (x.dtype().isFloatingPoint()) {
        x = x.requiresGrad(true);
      }
    }
    Tensor y;
    boolean own;
    // What backward needs is saved; the rest goes, or all microbatches would be held.
    try (TensorScope scope = TensorScope.open()) {
      y = module(a).call(x);
      if (a.stage() == stages() - 1) {
        Tensor mean = loss.of(y, targets.get(a.microbatch()));
        if (mean.numel() != 1) {
          throw new IllegalArgumentException(
              "Pipeline: the loss is " + mean.describe() + "; expected one element");
        }
        y = Pointwise.div(mean, microbatches);
      }
      own = y.isWholeStorageOf(scope);
      y = scope.keep(y);
    }
    passes.put(a, new Pass(x, y, own));
    if (a.stage() < stages() - 1) {
      if (ranks == 1) {
        handed.put(Action.forward(a.stage() + 1, a.microbatch()), y.detach());
      } else {
        messages.sendActivation(a.stage(), a.microbatch(), y);
      }
    }
    return y;
  }

  private void backward(Action a) {
    Pass pass = Objects.requireNonNull(passes.remove(Action.forward(a.stage(), a.microbatch())));
    @Nullable Tensor gradient = null;
    if (a.stage() < stages() - 1) {
      gradient = ranks == 1 ? Objects.requireNonNull(handed.remove(a)) : messages.gradient(a);
    }
    GradientSync sync = syncs.get(a.stage() / ranks);
    boolean last = a.microbatch() == microbatches - 1;
    try (GradientSync.NoSync open = sync != null && !last ? sync.noSync() : () -> {}) {
      if (pass.output.requiresGrad()) {
        List<@Nullable Tensor> gradients = new ArrayList<>();
        gradients.add(gradient);
        Autograd.backward(List.of(pass.output), gradients, false);
      }
    }
    if (gradient != null && ranks > 1) {
      gradient.close();
    }
    if (a.stage() > 0) {
      try (TensorScope scope = TensorScope.openWithoutWaiting()) {
        Tensor g = pass.input.grad();
        Tensor sent = g == null ? Creation.zerosLike(pass.input) : g;
        if (ranks == 1) {
          handed.put(Action.backward(a.stage() - 1, a.microbatch()), scope.keep(sent.copy()));
        } else {
          messages.sendGradient(a.stage(), a.microbatch(), sent);
        }
      }
      pass.input.setGrad(null);
      if (ranks > 1) {
        pass.input.close();
      }
    }
    if (pass.closeOutput) {
      pass.output.close();
    }
  }
}
