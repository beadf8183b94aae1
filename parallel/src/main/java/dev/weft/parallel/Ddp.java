package dev.weft.parallel;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.Gradients;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Module;
import dev.weft.tensor.DType;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Autograd;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Data parallelism: every rank of a mesh dimension has the whole model (or the same part of it) and
 * other rows of the batch; gradients are averaged when backward ends. Used by the thread that acts
 * for a rank.
 */
public final class Ddp {
  private static final long BUCKET_BYTES = 25L << 20;

  private final Module model;
  private final ProcessGroup group;
  private final Map<String, Tensor> parameters;
  private boolean scheduled;

  private Ddp(Module model, ProcessGroup group) {
    this.model = model;
    this.group = group;
    this.parameters = model.namedParameters();
  }

  /**
   * Takes the first rank's parameters and buffers on all ranks, and from then on averages the
   * gradients of each backward.
   *
   * @param mesh one dimension; take it from a larger mesh with {@code mesh.get("dp")}
   */
  public static Ddp of(Module model, DeviceMesh mesh) {
    if (mesh.ndim() != 1) {
      throw new IllegalArgumentException(
          "Ddp.of: mesh " + mesh + " has " + mesh.ndim() + " dimensions; expected 1");
    }
    Ddp ddp = new Ddp(model, mesh.getGroup());
    ddp.broadcast();
    for (Tensor p : ddp.parameters.values()) {
      Autograd.postAccumulateHook(p, unused -> ddp.schedule());
    }
    return ddp;
  }

  /** The model. */
  public Module model() {
    return model;
  }

  /** The model's output. */
  public Tensor call(Tensor... inputs) {
    return model.call(inputs);
  }

  private void broadcast() {
    List<Tensor> state = new ArrayList<>(parameters.values());
    state.addAll(model.namedBuffers().values());
    for (Tensor t : state) {
      group.broadcast(part(t), 0);
    }
  }

  /** This rank's memory of a tensor. */
  private static StridedTensor part(Tensor t) {
    return t instanceof DTensor d
        ? (StridedTensor) Autograd.noGrad(() -> d.toLocal())
        : (StridedTensor) t.detach();
  }

  private void schedule() {
    if (!scheduled) {
      scheduled = true;
      Autograd.afterBackward(this::average);
    }
  }

  private void average() {
    scheduled = false;
    List<String> missing =
        parameters.entrySet().stream()
            .filter(e -> e.getValue().grad() == null)
            .map(Map.Entry::getKey)
            .toList();
    if (!missing.isEmpty()) {
      throw new IllegalStateException(
          "Ddp: backward gave no gradient to "
              + missing
              + " on rank "
              + group.globalRank(group.rank())
              + "; every parameter must take part in the loss on every rank");
    }
    Gradients.settle(parameters.values());
    try (TensorScope scope = TensorScope.open()) {
      List<Bucket> buckets = buckets();
      for (Bucket b : buckets) {
        b.launch(group);
      }
      for (Bucket b : buckets) {
        b.finish();
      }
    }
  }

  private List<Bucket> buckets() {
    List<Bucket> buckets = new ArrayList<>();
    Bucket open = null;
    for (Tensor p : parameters.values()) {
      StridedTensor g = part(Objects.requireNonNull(p.grad()));
      if (open == null || open.dtype != g.dtype() || open.bytes > BUCKET_BYTES) {
        open = new Bucket(g.dtype());
        buckets.add(open);
      }
      open.add(g);
    }
    return buckets;
  }

  /** Gradients that travel together. */
  private static final class Bucket {
    final DType dtype;
    final List<StridedTensor> gradients = new ArrayList<>();
    long bytes;
    private @Nullable StridedTensor flat;
    private @Nullable Work work;

    Bucket(DType dtype) {
      this.dtype = dtype;
    }

    void add(StridedTensor g) {
      gradients.add(g);
      bytes += g.numel() * dtype.byteSize();
    }

    void launch(ProcessGroup group) {
      StridedTensor all = Tensors.empty(dtype, gradients.get(0).device(), bytes / dtype.byteSize());
      move(all, true);
      flat = all;
      work = group.allReduce(all, ReduceOp.AVG, CollectiveOptions.ASYNC);
    }

    void finish() {
      Objects.requireNonNull(work).await();
      move(Objects.requireNonNull(flat), false);
    }

    private void move(StridedTensor all, boolean in) {
      long at = 0;
      for (StridedTensor g : gradients) {
        long n = g.numel();
        StridedTensor piece = Regions.narrow(all, 0, at, n);
        StridedTensor shaped = n == 0 ? g : Regions.reshaped(piece, g.shape());
        if (n > 0) {
          Regions.copy(in ? g : shaped, in ? shaped : g);
        }
        at += n;
      }
      if (!in) {
        for (StridedTensor g : gradients) {
          g.storage().bumpVersion();
        }
      }
    }
  }
}
