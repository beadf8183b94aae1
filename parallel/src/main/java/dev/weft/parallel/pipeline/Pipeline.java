package dev.weft.parallel.pipeline;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.GroupOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.Work;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Module;
import dev.weft.parallel.GradientSync;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.op.Pointwise;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Runs the stages of a model that lie on the ranks of a mesh dimension. A step cuts the batch into
 * microbatches, runs them forward and backward as the schedule says, and leaves the gradients of
 * the mean loss in the parameters. Used by the thread that acts for a rank; all ranks of the
 * dimension step alike.
 *
 * <p>Stage s lies on rank s modulo the number of ranks. Stages pass one plain tensor on to the
 * next, and others to later ones where {@link #withSkip} says so, of the same shape and dtype in
 * every microbatch; they tell each other which in the first step. Sends and receives are posted and
 * never block, so that ranks cannot wait for each other in a circle. On GPUs the first step's go
 * over the host, where the group has a backend for it.
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
  private final Channel.Shared shared;
  private final List<Channel> channels;
  private @Nullable Trace trace;
  // Made by the first step.
  private List<StageRun> runs = List.of();

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
    this.shared = new Channel.Shared(mesh, device(mesh, modules), microbatches);
    this.channels = new ArrayList<>(Channel.chain(stages(), mesh.getGroup(), group(), shared));
  }

  /** A group of its own for messages. */
  private ProcessGroup group() {
    ProcessGroup all = shared.mesh.getGroup();
    return ranks == 1 ? all : Distributed.newGroup(all.ranks(), GroupOptions.DEFAULT);
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

  /**
   * Has what one stage stashes in a {@link Skip} travel to a later one that pops it. To be called
   * before the first step, on all ranks alike.
   *
   * @param name the skip's
   * @param from the stage that stashes it
   * @param to the stage that pops it
   */
  public Pipeline withSkip(String name, int from, int to) {
    beforeFirstStep("withSkip");
    if (from < 0 || to <= from || to >= stages()) {
      throw new IllegalArgumentException(
          "Pipeline.withSkip: '"
              + name
              + "' goes from stage "
              + from
              + " to "
              + to
              + "; expected a later one of the "
              + stages());
    }
    if (channels.stream().anyMatch(c -> c.isSkip() && c.name().equals(name))) {
      throw new IllegalArgumentException("Pipeline.withSkip: '" + name + "' is there already");
    }
    channels.add(new Channel(name, from, to, group(), group(), shared));
    return this;
  }

  /**
   * Lets batches have any number of rows from that of microbatches on: the first microbatches have
   * one row more than the others. Each counts in the loss by its rows. Every activation is then
   * preceded by a message with its shape, for which ranks wait. To be called before the first step,
   * on all ranks alike.
   */
  public Pipeline withUnevenMicrobatches() {
    beforeFirstStep("withUnevenMicrobatches");
    shared.variable = true;
    return this;
  }

  /** Has this rank's actions measured. To be called before the first step. */
  public Pipeline withTrace(Trace trace) {
    beforeFirstStep("withTrace");
    this.trace = trace;
    return this;
  }

  private void beforeFirstStep(String what) {
    if (!runs.isEmpty()) {
      throw new IllegalStateException("Pipeline." + what + ": to be called before the first step");
    }
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
   * @throws IllegalArgumentException if the number of microbatches does not divide the batch,
   *     unless {@link #withUnevenMicrobatches} is on
   */
  public @Nullable Tensor step(@Nullable Tensor input, @Nullable Tensor target) {
    List<Tensor> inputs = isFirst() ? cut("input", input) : List.of();
    List<Tensor> targets = isLast() ? cut("target", target) : List.of();
    double rows = targets.stream().mapToLong(t -> t.size(0)).sum();
    if (runs.isEmpty()) {
      runs = new ArrayList<>();
      for (int v = 0; v < modules.size(); v++) {
        runs.add(new StageRun(v * ranks + rank, modules.get(v), channels, trace));
      }
    }
    @Nullable Tensor total = null;
    boolean done = false;
    try {
      for (int k = 0; k < actions.size(); k++) {
        for (int ahead = k; ahead < Math.min(k + AHEAD, actions.size()); ahead++) {
          run(actions.get(ahead)).post(actions.get(ahead));
        }
        Action a = actions.get(k);
        if (!a.isForward()) {
          backward(a);
          continue;
        }
        boolean last = a.stage() == stages() - 1;
        Tensor y =
            run(a)
                .forward(
                    a,
                    a.stage() == 0 ? inputs.get(a.microbatch()) : null,
                    last ? out -> part(out, targets.get(a.microbatch()), rows) : out -> out);
        if (last) {
          Tensor part = y.detach();
          Tensor before = total;
          total = Autograd.noGrad(() -> before == null ? part.copy() : Pointwise.add(before, part));
        }
      }
      shared.finish();
      connect();
      done = true;
    } finally {
      if (!done) {
        runs.forEach(StageRun::clear);
        channels.forEach(Channel::clear);
        shared.sends.clear(); // they keep their memory themselves
      }
    }
    return total;
  }

  /** After the first step on GPUs: from now on messages go between these. */
  private void connect() {
    if (!shared.overHost) {
      return;
    }
    shared.overHost = false;
    try (TensorScope scope = TensorScope.open()) {
      List<Work> works = new ArrayList<>();
      channels.forEach(c -> c.connect(rank, works));
      Duration limit = shared.mesh.getGroup().timeout();
      works.forEach(w -> w.await(limit));
    }
  }

  /** A microbatch's part of the mean loss. */
  private Tensor part(Tensor output, Tensor target, double rows) {
    Tensor mean = loss.of(output, target);
    if (mean.numel() != 1) {
      throw new IllegalArgumentException(
          "Pipeline: the loss is " + mean.describe() + "; expected one element");
    }
    return shared.variable
        ? Pointwise.mul(mean, target.size(0) / rows)
        : Pointwise.div(mean, microbatches);
  }

  private StageRun run(Action a) {
    return runs.get(a.stage() / ranks);
  }

  private void backward(Action a) {
    GradientSync sync = syncs.get(a.stage() / ranks);
    boolean averages = a.isLast() && a.microbatch() == microbatches - 1;
    try (GradientSync.NoSync open = sync != null && !averages ? sync.noSync() : () -> {}) {
      if (a.kind() == Action.Kind.WEIGHT) {
        run(a).weights(a);
      } else {
        run(a).backward(a);
      }
    }
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
    if (rows < microbatches || (rows % microbatches != 0 && !shared.variable)) {
      throw new IllegalArgumentException(
          "Pipeline.step: "
              + what
              + " has "
              + rows
              + " rows; expected "
              + (shared.variable
                  ? "at least as many as the " + microbatches + " microbatches"
                  : "a multiple of the "
                      + microbatches
                      + " microbatches (or withUnevenMicrobatches)"));
    }
    List<Tensor> parts = new ArrayList<>();
    long at = 0;
    for (int m = 0; m < microbatches; m++) {
      long next = at + rows / microbatches + (m < rows % microbatches ? 1 : 0);
      parts.add(batch.slice(0, at, next));
      at = next;
    }
    return parts;
  }
}
