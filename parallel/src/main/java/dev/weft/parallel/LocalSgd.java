package dev.weft.parallel;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.InPlace;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Data parallelism between islands that a slow link connects: each trains by itself for a number of
 * steps, with an optimiser and data of its own, and then all take one outer step. Its gradient is
 * the mean over the islands of how far each has moved from where they last agreed. With an outer
 * rate of 1 and no momentum that is the mean of the parameters: local SGD (Stich, "Local SGD
 * Converges Fast and Communicates Little", 2019). With Nesterov's momentum it is DiLoCo (Douillard
 * et al., "DiLoCo: Distributed Low-Communication Training of Language Models", 2023).
 *
 * <p>Within an island anything may hold: replicas, shards, tensor parallelism on other dimensions
 * of the mesh. Used by the thread that acts for a rank; all ranks step alike. Holds the parameters
 * where the islands last agreed, and the momentum if there is one, each in the memory of a rank's
 * parameters in float32.
 */
public final class LocalSgd implements AutoCloseable {
  private final List<Tensor> parameters;
  private final ProcessGroup group;
  private final int innerSteps;
  private final double outerRate;
  private final double momentum;
  private final @Nullable DType sentDtype;
  // One after the other, flat: where the islands last agreed, and the momentum.
  private final List<Flat> flats = new ArrayList<>();
  private long steps;

  /** The parameters of one device. */
  private static final class Flat {
    final List<StridedTensor> parts = new ArrayList<>();
    final StridedTensor agreed;
    final @Nullable StridedTensor velocity;

    Flat(Device device, List<StridedTensor> parts, boolean momentum) {
      this.parts.addAll(parts);
      long n = parts.stream().mapToLong(Tensor::numel).sum();
      this.agreed = TensorScope.outside(() -> Tensors.empty(DType.FLOAT32, device, n));
      this.velocity =
          momentum ? TensorScope.outside(() -> Tensors.empty(DType.FLOAT32, device, n)) : null;
      if (velocity != null) {
        Regions.zero(velocity);
      }
    }
  }

  private LocalSgd(
      List<Tensor> parameters,
      DeviceMesh islands,
      int innerSteps,
      double outerRate,
      double momentum,
      @Nullable DType sentDtype) {
    if (islands.ndim() != 1) {
      throw new IllegalArgumentException(
          "LocalSgd: mesh " + islands + " has " + islands.ndim() + " dimensions; expected 1");
    }
    if (innerSteps < 1 || !(outerRate > 0) || !(momentum >= 0 && momentum < 1)) {
      throw new IllegalArgumentException(
          "LocalSgd: innerSteps is "
              + innerSteps
              + ", outerRate "
              + outerRate
              + " and momentum "
              + momentum
              + "; expected 1 or more, more than 0, at least 0 and less than 1");
    }
    this.parameters = List.copyOf(new LinkedHashSet<>(parameters));
    this.group = islands.getGroup();
    this.innerSteps = innerSteps;
    this.outerRate = outerRate;
    this.momentum = momentum;
    this.sentDtype = sentDtype;
    Map<Device, List<StridedTensor>> byDevice = new LinkedHashMap<>();
    for (Tensor p : this.parameters) {
      StridedTensor part = Parts.of(p);
      Work unused = group.broadcast(part.alias(), islands.groupRank(0, 0));
      byDevice.computeIfAbsent(part.device(), d -> new ArrayList<>()).add(part);
    }
    byDevice.forEach((device, parts) -> flats.add(new Flat(device, parts, momentum > 0)));
    for (Flat f : flats) {
      long at = 0;
      for (StridedTensor part : f.parts) {
        Parts.copy(part, Parts.piece(f.agreed, at, part.shape()));
        at += part.numel();
      }
    }
  }

  /**
   * Local SGD: the parameters are averaged every so many steps. Takes the first island's parameters
   * on all.
   *
   * @param islands one dimension of the mesh
   */
  public static LocalSgd averaging(List<Tensor> parameters, DeviceMesh islands, int innerSteps) {
    return new LocalSgd(parameters, islands, innerSteps, 1, 0, null);
  }

  /**
   * DiLoCo with the paper's outer rate of 0.7 and momentum of 0.9. Takes the first island's
   * parameters on all.
   *
   * @param islands one dimension of the mesh
   * @param innerSteps 500 in the paper
   */
  public static LocalSgd diLoCo(List<Tensor> parameters, DeviceMesh islands, int innerSteps) {
    return diLoCo(parameters, islands, innerSteps, 0.7, 0.9, null);
  }

  /**
   * The same with other numbers.
   *
   * @param sentDtype what the moves are sent in, which saves bytes on the link; null for float32
   */
  public static LocalSgd diLoCo(
      List<Tensor> parameters,
      DeviceMesh islands,
      int innerSteps,
      double outerRate,
      double momentum,
      @Nullable DType sentDtype) {
    if (sentDtype != null && !sentDtype.isFloatingPoint()) {
      throw new IllegalArgumentException(
          "LocalSgd: sentDtype is " + sentDtype + "; expected a floating-point dtype");
    }
    return new LocalSgd(parameters, islands, innerSteps, outerRate, momentum, sentDtype);
  }

  /**
   * To be called after each step of the inner optimiser. Every so many calls the islands agree: the
   * host waits for the link then.
   *
   * @return whether they have
   */
  public boolean step() {
    steps++;
    if (steps % innerSteps != 0) {
      return false;
    }
    Autograd.noGrad(() -> flats.forEach(this::agree));
    return true;
  }

  private void agree(Flat f) {
    try (TensorScope scope = TensorScope.open()) {
      // How far this island has moved, against the direction of a gradient.
      StridedTensor moved = Regions.copyOf(f.agreed);
      long at = 0;
      for (StridedTensor part : f.parts) {
        Tensor unused = InPlace.sub(Parts.piece(moved, at, part.shape()), part);
        at += part.numel();
      }
      StridedTensor sent = sentDtype == null ? moved : (StridedTensor) moved.to(sentDtype);
      group.allReduce(sent, ReduceOp.AVG, CollectiveOptions.SYNC).await();
      Tensor gradient = sent.to(DType.FLOAT32);
      if (f.velocity != null) {
        // Nesterov's momentum as PyTorch's SGD has it: v = mu v + g, g + mu v.
        Tensor unused = InPlace.add(InPlace.mul(f.velocity, momentum), gradient);
        unused = InPlace.add(gradient, f.velocity, momentum);
      }
      Tensor unused = InPlace.sub(f.agreed, gradient, outerRate);
      at = 0;
      for (StridedTensor part : f.parts) {
        Parts.copy(Parts.piece(f.agreed, at, part.shape()), part);
        part.storage().bumpVersion();
        at += part.numel();
      }
    }
  }

  /** How many calls of {@link #step} there were. */
  public long steps() {
    return steps;
  }

  /**
   * What a checkpoint needs besides the parameters: where the islands last agreed and the momentum,
   * of this rank's parts, one after the other; by name. The tensors are this object's own, to be
   * saved, or to be filled.
   */
  public Map<String, Tensor> state() {
    Map<String, Tensor> out = new LinkedHashMap<>();
    for (int i = 0; i < flats.size(); i++) {
      out.put("agreed." + i, flats.get(i).agreed);
      StridedTensor velocity = flats.get(i).velocity;
      if (velocity != null) {
        out.put("velocity." + i, velocity);
      }
    }
    return out;
  }

  /** Goes on from a number of steps, once {@link #state} has been filled. */
  public void resume(long steps) {
    if (steps < 0) {
      throw new IllegalArgumentException("steps is " + steps + "; expected 0 or more");
    }
    this.steps = steps;
  }

  /** Lets the memory go. */
  @Override
  public void close() {
    for (Flat f : flats) {
      f.agreed.close();
      if (f.velocity != null) {
        f.velocity.close();
      }
    }
    flats.clear();
  }
}
