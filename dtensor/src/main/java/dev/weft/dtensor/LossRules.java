package dev.weft.dtensor;

import dev.weft.c10d.ReduceOp;
import dev.weft.funcol.FunctionalCollectives;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Compare;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Reductions;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;

/**
 * Losses over class indices: input [N, C, ...] or [C], target [N, ...] or []. Positions may be cut,
 * classes are whole. A mean divides by the number of targets that count on all ranks, so that it is
 * right however they are spread.
 */
final class LossRules {
  /** How many targets count, for as long as they are what they were. */
  private record Count(long count, long ignored, int version) {}

  // Backward asks again what forward has asked: by the part of the targets, which is kept for it.
  private static final Map<Tensor, Count> COUNTS = Collections.synchronizedMap(new WeakHashMap<>());

  private LossRules() {}

  static void addTo(Map<String, Sharding.Rule> rules) {
    for (String op : List.of("cross_entropy", "nll_loss")) {
      rules.put(op, FollowRules.following(new Forward()));
    }
    for (String op : List.of("cross_entropy_backward", "nll_loss_backward")) {
      rules.put(op, FollowRules.following(new Backward()));
    }
  }

  private static String reduction(Attrs attrs) {
    return attrs.get(0, String.class);
  }

  /** Cuts of targets that differ from those of the input would be in another order. */
  private static boolean isWhole(DTensorSpec target) {
    return target.placements().stream().noneMatch(Placement::isShard);
  }

  /** The dimension of the input that a dimension of the target is. */
  private static Placement ofInput(int targetDim) {
    return new Shard(targetDim == 0 ? 0 : targetDim + 1);
  }

  private static final class Forward implements Sharding.Rule {
    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      List<Sharding.Row> rows = new ArrayList<>();
      if (call.ndim(0) == 1) {
        return rows;
      }
      String reduction = reduction(call.attrs());
      for (int d = 0; d < call.ndim(1); d++) {
        Placement out = reduction.equals("none") ? new Shard(d) : Partial.SUM;
        Sharding.Row row = Sharding.Row.of(out, ofInput(d), new Shard(d));
        if (reduction.equals("mean") && isWhole(call.inputs().get(1))) {
          // Where targets are whole they can be counted without asking the other ranks.
          rows.add(Sharding.Row.of(out, ofInput(d), Replicate.INSTANCE));
        }
        if (reduction.equals("mean")) {
          row = row.communicating(1, 8);
        }
        rows.add(row);
      }
      return rows;
    }

    @Override
    public Sharding.LocalCall localCall(Sharding.Call call) {
      return reduction(call.attrs()).equals("mean")
          ? Forward::mean
          : (c, in, out, local) -> Dispatcher.callAll(c.op(), c.attrs(), local);
    }

    private static Tensor[] mean(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs, Tensor[] local) {
      if (!outputs.get(0).hasPartial()) {
        return Dispatcher.callAll(call.op(), call.attrs(), local);
      }
      Tensor count = counted(inputs.get(1), local[1], call.attrs().longAt(1));
      Tensor target = likeInput(inputs.get(0), inputs.get(1), local[1]);
      Tensor sum = Dispatcher.call(call.op(), call.attrs().with(0, "sum"), local[0], target);
      return new Tensor[] {Pointwise.div(sum, Casts.to(count, sum.dtype()))};
    }
  }

  /** The part of the targets that belongs to the part of the input. */
  private static Tensor likeInput(DTensorSpec input, DTensorSpec target, Tensor local) {
    Tensor part = local;
    for (int m = 0; m < input.mesh().ndim(); m++) {
      Placement p = input.placements().get(m);
      if (p.isShard() && target.placements().get(m).isReplicate()) {
        Cuts cuts = Cuts.of(new Shard(Math.max(0, p.shardDim() - 1)), input.mesh().size(m));
        part = Redistribution.cut((StridedTensor) part, cuts, input.mesh().coordinate(m));
      }
    }
    return part;
  }

  /** How many targets count on all ranks. */
  static Tensor counted(DTensorSpec target, Tensor local, long ignored) {
    Count known = COUNTS.get(local);
    if (known != null && known.version == local.version() && known.ignored == ignored) {
      return Creation.full(known.count, DType.INT64, local.device());
    }
    Tensor count = count(target, local, ignored);
    if (target.placements().stream().anyMatch(Placement::isShard)) {
      COUNTS.put(local, new Count((long) count.item(), ignored, local.version()));
    }
    return count;
  }

  private static Tensor count(DTensorSpec target, Tensor local, long ignored) {
    Tensor count = Reductions.sum(Compare.ne(local, ignored));
    for (int m = 0; m < target.mesh().ndim(); m++) {
      if (target.placements().get(m).isShard() && target.mesh().size(m) > 1) {
        count = FunctionalCollectives.allReduce(count, ReduceOp.SUM, target.mesh().getGroup(m));
      }
    }
    return count;
  }

  /** Gradient, input, target. */
  private static final class Backward implements Sharding.Rule {
    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      List<Sharding.Row> rows = new ArrayList<>();
      String reduction = reduction(call.attrs());
      if (call.ndim(1) > 1) {
        for (int d = 0; d < call.ndim(2); d++) {
          Placement gradient = reduction.equals("none") ? new Shard(d) : Replicate.INSTANCE;
          Sharding.Row row = Sharding.Row.of(ofInput(d), gradient, ofInput(d), new Shard(d));
          if (reduction.equals("mean") && isWhole(call.inputs().get(2))) {
            rows.add(Sharding.Row.of(ofInput(d), gradient, ofInput(d), Replicate.INSTANCE));
          }
          if (reduction.equals("mean")) {
            row = row.communicating(1, 8);
          }
          rows.add(row);
        }
      }
      for (Placement p : PointwiseRules.linear()) {
        List<Placement> in =
            new ArrayList<>(Collections.nCopies(call.inputs().size(), Replicate.INSTANCE));
        in.set(0, p);
        rows.add(new Sharding.Row(List.of(p), in));
      }
      return rows;
    }

    @Override
    public Sharding.LocalCall localCall(Sharding.Call call) {
      return reduction(call.attrs()).equals("mean")
          ? Backward::mean
          : (c, in, out, local) -> Dispatcher.callAll(c.op(), c.attrs(), local);
    }

    private static Tensor[] mean(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs, Tensor[] local) {
      if (inputs.get(1).placements().stream().noneMatch(Placement::isShard)) {
        return Dispatcher.callAll(call.op(), call.attrs(), local);
      }
      Tensor count = counted(inputs.get(2), local[2], call.attrs().longAt(1));
      Tensor gradient = Pointwise.div(local[0], Casts.to(count, local[0].dtype()));
      return new Tensor[] {
        Dispatcher.call(
            call.op(),
            call.attrs().with(0, "sum"),
            gradient,
            local[1],
            likeInput(inputs.get(1), inputs.get(2), local[2]))
      };
    }
  }
}
