package dev.weft.dtensor;

import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
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
    return Planner.plan(spec.mesh().shape(), spec.shape(), spec.dtype(), spec.placements(), to);
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
      int m = step.meshDim();
      long[] whole = Layout.localShapeWithout(spec.shape(), mesh.shape(), now, at, m);
      if (mesh.size(m) > 1) {
        result = step(result, step, mesh, at[m], whole);
      }
      now.set(m, step.to());
    }
    return result;
  }

  private static StridedTensor step(
      StridedTensor local, Plan.Step step, DeviceMesh mesh, int index, long[] whole) {
    int m = step.meshDim();
    return switch (step.action()) {
      case ALL_REDUCE ->
          new ShardCollectives(mesh, m).allReduce(local, ((Partial) step.from()).op());
      case REDUCE_SCATTER ->
          new ShardCollectives(mesh, m)
              .reduceScatter(local, ((Shard) step.to()).dim(), ((Partial) step.from()).op());
      case ALL_GATHER -> {
        int dim = ((Shard) step.from()).dim();
        yield new ShardCollectives(mesh, m).allGather(local, dim, whole[dim]);
      }
      case ALL_TO_ALL -> {
        int from = ((Shard) step.from()).dim();
        yield new ShardCollectives(mesh, m)
            .allToAll(local, from, ((Shard) step.to()).dim(), whole[from]);
      }
      case CUT -> {
        int dim = ((Shard) step.to()).dim();
        yield cut(local, dim, mesh.size(m), index);
      }
      case SPLIT_VALUE -> splitValue(local, (Partial) step.to(), mesh.size(m), index);
    };
  }

  /** A contiguous copy of one chunk. */
  static StridedTensor cut(StridedTensor local, int dim, int n, int index) {
    long size = local.shape()[dim];
    return Regions.copyOf(
        Regions.narrow(local, dim, Layout.start(size, n, index), Layout.length(size, n, index)));
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
