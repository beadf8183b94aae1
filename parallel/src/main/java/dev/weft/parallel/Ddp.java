package dev.weft.parallel;

import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Module;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

/**
 * Data parallelism: every rank of a mesh dimension has the whole model (or the same part of it) and
 * other rows of the batch. Gradients are averaged in buckets while backward goes on, and are the
 * same on all ranks when it returns. Used by the thread that acts for a rank; all ranks run the
 * same backwards.
 *
 * <p>The mean over ranks is that of the whole batch where all ranks have as many rows. With
 * distributed parameters each rank averages its part. Buckets follow the reverse order of
 * registration in the first averaged backward and the order of arrival from then on.
 */
public final class Ddp implements GradientSync {
  private final Module model;
  private final ProcessGroup group;
  private final Reducer reducer;
  private boolean sync = true;
  private final boolean broadcastsBuffers;
  private long bufferBroadcasts;

  private Ddp(Module model, ProcessGroup group, DdpOptions options) {
    this.model = model;
    this.group = group;
    this.reducer = new Reducer(model.namedParameters(), group, options);
    this.broadcastsBuffers = options.broadcastBuffers() && !model.namedBuffers().isEmpty();
  }

  /** The same with {@link DdpOptions#DEFAULT}. */
  public static Ddp of(Module model, DeviceMesh mesh) {
    return of(model, mesh, DdpOptions.DEFAULT);
  }

  /**
   * Takes the first rank's parameters and buffers on all ranks, and from then on averages the
   * gradients of each backward. To be called once a model, after parameters have been replaced or
   * moved.
   *
   * @param mesh one dimension; take it from a larger mesh with {@code mesh.get("dp")}
   */
  public static Ddp of(Module model, DeviceMesh mesh, DdpOptions options) {
    if (mesh.ndim() != 1) {
      throw new IllegalArgumentException(
          "Ddp.of: mesh " + mesh + " has " + mesh.ndim() + " dimensions; expected 1");
    }
    Ddp ddp = new Ddp(model, mesh.getGroup(), options);
    List<Tensor> state = new ArrayList<>(distinct(model.namedParameters().values()));
    state.addAll(distinct(model.namedBuffers().values()));
    ddp.broadcast(state, 0);
    for (Tensor p : ddp.reducer.parameters()) {
      Autograd.postAccumulateHook(p, ddp::arrived);
    }
    if (ddp.broadcastsBuffers) {
      Module.Handle unused =
          model.forwardPreHook(
              (m, inputs) -> {
                if (ddp.sync && m.isTraining()) {
                  ddp.broadcastBuffers();
                }
                return inputs;
              });
    }
    return ddp;
  }

  /** Each once, in the order given, which is the same on all ranks. */
  private static Set<Tensor> distinct(Collection<Tensor> tensors) {
    return new LinkedHashSet<>(tensors);
  }

  private void broadcast(Iterable<Tensor> state, int root) {
    for (Tensor t : state) {
      Work unused = group.broadcast(Parts.of(t).alias(), root);
    }
  }

  private void broadcastBuffers() {
    bufferBroadcasts++;
    broadcast(distinct(model.namedBuffers().values()), 0);
  }

  private void arrived(Tensor parameter) {
    if (sync) {
      reducer.arrived(parameter);
    }
  }

  /** The model. */
  public Module model() {
    return model;
  }

  /** The model's output; to call the model itself does the same. */
  public Tensor call(Tensor... inputs) {
    return model.call(inputs);
  }

  /**
   * Whether the next backwards average. The gradients of those that do not are accumulated, and
   * averaged with the next backward that does.
   */
  @Override
  public void requiresGradientSync(boolean sync) {
    this.sync = sync;
  }

  @Override
  public boolean requiresGradientSync() {
    return sync;
  }

  /**
   * Runs a step for each batch where ranks have different numbers of them. A rank that is done
   * takes part in the averages of the others with zeros (the mean stays one over all ranks), and in
   * the end all take parameters and buffers of the first rank that had most batches. Optimiser
   * state stays as it is. Before each step the ranks ask each other whether anybody goes on, for
   * which the host waits.
   *
   * @param step one forward in training (where buffers are broadcast) and one backward that
   *     averages, besides what concerns no other rank
   */
  public <T> void join(Iterable<? extends T> batches, Consumer<? super T> step) {
    long count = 0;
    for (T batch : batches) {
      long ignored = highest(1);
      long before = reducer.averaged();
      long forwards = bufferBroadcasts;
      step.accept(batch);
      boolean buffersOnce = !broadcastsBuffers || bufferBroadcasts == forwards + 1;
      if (reducer.averaged() != before + 1 || !buffersOnce) {
        throw new IllegalStateException(
            "Ddp.join: step "
                + count
                + " averaged "
                + (reducer.averaged() - before)
                + " backwards and ran "
                + (broadcastsBuffers ? bufferBroadcasts - forwards : 1)
                + " forwards in training; expected one of each, which ranks that are done repeat");
      }
      count++;
    }
    while (highest(0) > 0) {
      if (broadcastsBuffers) {
        broadcastBuffers();
      }
      reducer.shadow();
    }
    int n = group.size();
    int root = n - 1 - (int) (highest(count * n + n - 1 - group.rank()) % n);
    List<Tensor> state = new ArrayList<>(distinct(model.namedParameters().values()));
    state.addAll(distinct(model.namedBuffers().values()));
    broadcast(state, root);
  }

  private long highest(long mine) {
    try (TensorScope scope = TensorScope.open()) {
      Tensor value = Tensor.of(new long[] {mine}, 1).to(group.controlDevice());
      Work unused = group.allReduce(value, ReduceOp.MAX);
      return value.toLongArray()[0];
    }
  }

  /** The parameters of each bucket, by position of registration, in the order of reduction. */
  List<List<Integer>> bucketOrder() {
    return reducer.order();
  }
}
