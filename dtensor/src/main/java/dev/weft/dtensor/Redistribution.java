package dev.weft.dtensor;

import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Pointwise;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Runs plans on this rank's part of a tensor. Not recorded by autograd. */
final class Redistribution {
  private Redistribution() {}

  /** The plan between two placements of a spec. */
  static Plan plan(DTensorSpec spec, List<Placement> to) {
    Plan plan =
        Planner.plan(spec.mesh().shape(), spec.shape(), spec.dtype(), spec.placements(), to);
    return MergedSteps.of(plan, spec);
  }

  /**
   * This rank's part under other placements; a collective along the mesh dimensions that change.
   */
  static StridedTensor run(StridedTensor local, DTensorSpec spec, List<Placement> to) {
    Plan plan = plan(spec, to);
    DeviceMesh mesh = spec.mesh();
    int @Nullable [] at = mesh.getCoordinate();
    if (at == null) {
      return local;
    }
    List<Placement> now = new ArrayList<>(spec.placements());
    StridedTensor result = local;
    for (Plan.Step step : plan.steps()) {
      List<Placement> without = new ArrayList<>(now);
      for (int m : step.meshDims()) {
        without.set(m, Replicate.INSTANCE);
      }
      long[] whole = Layout.localShape(spec.shape(), mesh.shape(), without, at);
      if (mesh.size(step.meshDim()) > 1 || step.meshDims().size() > 1) {
        result = step(result, step, mesh, at[step.meshDim()], whole);
      }
      for (int m : step.meshDims()) {
        now.set(m, step.to());
      }
    }
    return result;
  }

  private static StridedTensor step(
      StridedTensor local, Plan.Step step, DeviceMesh mesh, int index, long[] whole) {
    Plan.Action action = step.action();
    if (action == Plan.Action.CUT) {
      return cut(local, Cuts.of(step.to(), mesh.size(step.meshDim())), index);
    }
    if (action == Plan.Action.SPLIT_VALUE) {
      return splitValue(local, (Partial) step.to(), mesh.size(step.meshDim()), index);
    }
    ShardCollectives along = ShardCollectives.along(mesh, step.meshDims());
    int[] sizes = step.meshDims().stream().mapToInt(mesh::size).toArray();
    Cuts from = cuts(step.from(), sizes);
    Cuts to = cuts(step.to(), sizes);
    return switch (action) {
      case ALL_REDUCE -> along.allReduce(local, (Partial) step.from());
      case REDUCE_SCATTER -> along.reduceScatter(local, to, (Partial) step.from());
      case ALL_GATHER -> along.allGather(local, from, whole[from.dim()]);
      case ALL_TO_ALL -> along.allToAll(local, from, to, whole[from.dim()]);
      default -> throw new IllegalStateException("unknown step " + step);
    };
  }

  private static Cuts cuts(Placement p, int[] sizes) {
    return new Cuts(java.util.Collections.nCopies(sizes.length, p), sizes);
  }

  /** A contiguous copy of one part. */
  static StridedTensor cut(StridedTensor local, Cuts cuts, int index) {
    int dim = cuts.dim();
    List<Cuts.Range> ranges = cuts.ranges(local.shape()[dim], index);
    long[] shape = local.shape().clone();
    shape[dim] = Cuts.length(ranges);
    StridedTensor part = Tensors.empty(local.dtype(), local.device(), shape);
    ShardCollectives.collect(local, part, dim, ranges);
    return part;
  }

  /** Contributions whose reduction is the value. */
  private static StridedTensor splitValue(StridedTensor local, Partial to, int n, int index) {
    if (to.op() != Partial.Op.SUM) {
      return local;
    }
    if (local.dtype().isFloatingPoint()) {
      return (StridedTensor) Pointwise.div(local, n);
    }
    // Integers do not divide evenly: the first rank contributes all.
    StridedTensor share = (StridedTensor) Casts.copy(local);
    if (index != 0) {
      Regions.zero(share);
    }
    return share;
  }
}
