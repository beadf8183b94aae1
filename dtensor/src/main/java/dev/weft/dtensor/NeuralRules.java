package dev.weft.dtensor;

import dev.weft.tensor.Shapes;
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
    for (String op : List.of("rms_norm", "layer_norm")) {
      put(rules, op, call -> norm(call, 1, false));
    }
    for (String op : List.of("rms_norm_backward", "layer_norm_backward")) {
      put(rules, op, call -> norm(call, 2, true));
    }
    for (String op : List.of("rms_norm_weight_backward", "layer_norm_weight_backward")) {
      put(rules, op, NeuralRules::normWeight);
    }
    put(rules, "rope", NeuralRules::rope);
    LossRules.addTo(rules);
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
      if (d != sequence) {
        rows.add(
            Sharding.Row.of(new Shard(d), new Shard(d), Replicate.INSTANCE, Replicate.INSTANCE));
      }
    }
    addLinearFirst(call, rows);
    return rows;
  }
}
