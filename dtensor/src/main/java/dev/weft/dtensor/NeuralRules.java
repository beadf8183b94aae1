package dev.weft.dtensor;

import dev.weft.c10d.ReduceOp;
import dev.weft.funcol.FunctionalCollectives;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Reductions;
import dev.weft.tensor.op.Unary;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Softmax, norms, losses and position encoding. */
final class NeuralRules {
  private NeuralRules() {}

  static void addTo(Map<String, Sharding.Rule> rules) {
    for (String op : List.of("softmax", "log_softmax")) {
      rules.put(
          op, FollowRules.settling(call -> FollowRules.but(call.ndim(0), call.attrs().intAt(0))));
    }
    for (String op : List.of("softmax_backward", "log_softmax_backward")) {
      put(rules, op, call -> alongOthers(call, call.attrs().intAt(0), true));
    }
    put(rules, "layer_norm", call -> norm(call, 1, false));
    put(rules, "rms_norm", new RmsNorm());
    for (String op : List.of("rms_norm_backward", "layer_norm_backward")) {
      put(rules, op, call -> norm(call, 2, true));
    }
    for (String op : List.of("rms_norm_weight_backward", "layer_norm_weight_backward")) {
      put(rules, op, NeuralRules::normWeight);
    }
    put(rules, "rope", NeuralRules::rope);
    LossRules.addTo(rules);
    FusedRules.addTo(rules);
  }

  private static void put(Map<String, Sharding.Rule> rules, String op, Sharding.Rule rule) {
    rules.put(op, FollowRules.following(rule));
  }

  /** All inputs alike; one dimension whole. */
  private static List<Sharding.Row> alongOthers(
      Sharding.Call call, int whole, boolean linearFirst) {
    int n = call.ndim(0);
    int dim = Shapes.dim(whole, n);
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d = 0; d < n; d++) {
      if (d != dim) {
        rows.add(
            new Sharding.Row(
                List.of(new Shard(d)), Collections.nCopies(call.inputs().size(), new Shard(d))));
      }
    }
    if (linearFirst) {
      addLinearFirst(call, rows);
    }
    return rows;
  }

  private static void addLinearFirst(Sharding.Call call, List<Sharding.Row> rows) {
    for (Placement p : PointwiseRules.linear()) {
      List<Placement> in =
          new ArrayList<>(Collections.nCopies(call.inputs().size(), Replicate.INSTANCE));
      in.set(0, p);
      rows.add(new Sharding.Row(List.of(p), in));
    }
  }

  /** The first inputs follow the leading dimensions; weights are whole. */
  private static List<Sharding.Row> norm(Sharding.Call call, int following, boolean linearFirst) {
    int lead = call.ndim(0) - call.attrs().longsAt(0).length;
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d = 0; d < lead; d++) {
      List<Placement> in = new ArrayList<>();
      for (int i = 0; i < call.inputs().size(); i++) {
        in.add(i < following ? new Shard(d) : Replicate.INSTANCE);
      }
      rows.add(new Sharding.Row(List.of(new Shard(d)), in));
    }
    if (linearFirst) {
      addLinearFirst(call, rows);
    }
    return rows;
  }

  private static List<Sharding.Row> normWeight(Sharding.Call call) {
    int lead = call.ndim(0) - call.attrs().longsAt(0).length;
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d = 0; d < lead; d++) {
      rows.add(Sharding.Row.of(Partial.SUM, new Shard(d), new Shard(d)));
    }
    addLinearFirst(call, rows);
    return rows;
  }

  /** x, cosines, sines; sequence and width are whole. */
  private static List<Sharding.Row> rope(Sharding.Call call) {
    int n = call.ndim(0);
    int sequence = Shapes.dim(call.attrs().intAt(0), n);
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d = 0; d < n - 1; d++) {
      // Positions take their rows of the tables.
      Placement tables = d == sequence ? new Shard(0) : Replicate.INSTANCE;
      rows.add(Sharding.Row.of(new Shard(d), new Shard(d), tables, tables));
    }
    addLinearFirst(call, rows);
    return rows;
  }

  /** The normalised dimensions may be cut, too: the mean of squares is then summed over ranks. */
  private static final class RmsNorm implements Sharding.Rule {
    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      List<Sharding.Row> rows = norm(call, 1, false);
      int lead = call.ndim(0) - call.attrs().longsAt(0).length;
      long rowsOfX =
          Shapes.numel(call.shape(0)) / Math.max(1, Shapes.numel(call.attrs().longsAt(0)));
      for (int d = lead; d < call.ndim(0); d++) {
        List<Placement> in = new ArrayList<>(List.of(new Shard(d)));
        if (call.inputs().size() > 1) {
          in.add(new Shard(d - lead));
        }
        long bytes = 2 * rowsOfX * call.outputs()[0].dtype().byteSize();
        rows.add(new Sharding.Row(List.of(new Shard(d)), in).communicating(2, bytes));
      }
      return rows;
    }

    @Override
    public Sharding.LocalCall localCall(Sharding.Call call) {
      return RmsNorm::run;
    }

    private static Tensor[] run(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs, Tensor[] local) {
      DTensorSpec x = inputs.get(0);
      int lead = call.ndim(0) - call.attrs().longsAt(0).length;
      List<Integer> along = new ArrayList<>();
      for (int m = 0; m < x.mesh().ndim(); m++) {
        if (x.placements().get(m).shardDim() >= lead && x.mesh().size(m) > 1) {
          along.add(m);
        }
      }
      if (along.isEmpty()) {
        return Dispatcher.callAll(call.op(), call.attrs(), local);
      }
      int[] dims = new int[call.ndim(0) - lead];
      for (int i = 0; i < dims.length; i++) {
        dims[i] = lead + i;
      }
      Tensor squares = Reductions.sum(Unary.square(local[0]), dims, true);
      for (int m : along) {
        squares = FunctionalCollectives.allReduce(squares, ReduceOp.SUM, x.mesh().getGroup(m));
      }
      long count = Shapes.numel(call.attrs().longsAt(0));
      double eps = call.attrs().isNull(1) ? epsilon(x) : call.attrs().doubleAt(1);
      Tensor scale = Unary.rsqrt(Pointwise.add(Pointwise.div(squares, count), eps));
      Tensor y = Pointwise.mul(local[0], scale);
      return new Tensor[] {
        Casts.to(local.length > 1 ? Pointwise.mul(y, local[1]) : y, call.outputs()[0].dtype())
      };
    }

    private static double epsilon(DTensorSpec x) {
      return switch (x.dtype()) {
        case FLOAT64 -> 0x1p-52;
        case FLOAT16 -> 0x1p-10;
        case BFLOAT16 -> 0x1p-7;
        default -> 0x1p-23;
      };
    }
  }
}
