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
      rules.put(op, call -> alongOthers(call, call.attrs().intAt(0), false));
    }
    for (String op : List.of("softmax_backward", "log_softmax_backward")) {
      rules.put(op, call -> alongOthers(call, call.attrs().intAt(0), true));
    }
    for (String op : List.of("rms_norm", "layer_norm")) {
      rules.put(op, call -> norm(call, 1, false));
    }
    for (String op : List.of("rms_norm_backward", "layer_norm_backward")) {
      rules.put(op, call -> norm(call, 2, true));
    }
    for (String op : List.of("rms_norm_weight_backward", "layer_norm_weight_backward")) {
      rules.put(op, NeuralRules::normWeight);
    }
    for (String op : List.of("cross_entropy", "nll_loss")) {
      rules.put(op, NeuralRules::loss);
    }
    for (String op : List.of("cross_entropy_backward", "nll_loss_backward")) {
      rules.put(op, NeuralRules::lossBackward);
    }
    for (String op : List.of("tril", "triu")) {
      rules.put(op, NeuralRules::triangle);
    }
    rules.put("rope", NeuralRules::rope);
    rules.put("embedding", new EmbeddingRules.Forward());
    rules.put("embedding_backward", new EmbeddingRules.Backward());
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

  /** Input [N, C, ...], target [N, ...]; the classes are whole. A sum may be left outstanding. */
  private static List<Sharding.Row> loss(Sharding.Call call) {
    List<Sharding.Row> rows = new ArrayList<>();
    String reduction = call.attrs().get(0, String.class);
    if (call.ndim(0) == 1 || reduction.equals("mean")) {
      return rows; // a mean over unequal parts is not the mean of means
    }
    for (int d = 0; d < call.ndim(1); d++) {
      Placement out = reduction.equals("sum") ? Partial.SUM : new Shard(d);
      rows.add(Sharding.Row.of(out, new Shard(d == 0 ? 0 : d + 1), new Shard(d)));
    }
    return rows;
  }

  /** Gradient, input, target. */
  private static List<Sharding.Row> lossBackward(Sharding.Call call) {
    List<Sharding.Row> rows = new ArrayList<>();
    String reduction = call.attrs().get(0, String.class);
    if (call.ndim(1) > 1 && !reduction.equals("mean")) {
      for (int d = 0; d < call.ndim(2); d++) {
        Placement in = new Shard(d == 0 ? 0 : d + 1);
        Placement gradient = reduction.equals("sum") ? Replicate.INSTANCE : new Shard(d);
        rows.add(Sharding.Row.of(in, gradient, in, new Shard(d)));
      }
    }
    addLinearFirst(call, rows);
    return rows;
  }

  private static List<Sharding.Row> triangle(Sharding.Call call) {
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d = 0; d < call.ndim(0) - 2; d++) {
      rows.add(Sharding.Row.of(new Shard(d), new Shard(d)));
    }
    for (Placement p : PointwiseRules.linear()) {
      rows.add(Sharding.Row.of(p, p));
    }
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
