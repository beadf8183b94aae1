package dev.weft.dtensor;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Attention in one operator and gated activations: results of several tensors cut alike. */
final class FusedRules {
  private FusedRules() {}

  static void addTo(Map<String, Sharding.Rule> rules) {
    rules.put("swiglu", PointwiseRules::cuts);
    rules.put("swiglu_backward", FusedRules::swigluBackward);
    rules.put("scaled_dot_product_attention", FollowRules.following(FusedRules::attention));
    rules.put(
        "scaled_dot_product_attention_backward",
        FollowRules.following(FusedRules::attentionBackward));
  }

  private static List<Sharding.Row> swigluBackward(Sharding.Call call) {
    List<Sharding.Row> rows = new ArrayList<>();
    for (Sharding.Row r : PointwiseRules.cuts(call)) {
      rows.add(new Sharding.Row(Collections.nCopies(2, r.outputs().get(0)), r.inputs()));
    }
    return rows;
  }

  /** The dimension of heads. */
  private static int heads(Sharding.Call call) {
    return 3 - call.attrs().intAt(2);
  }

  /** q, k and v are cut by batch elements or heads; sequence and width are whole. */
  private static List<Sharding.Row> attention(Sharding.Call call) {
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d : new int[] {0, heads(call)}) {
      Placement cut = new Shard(d);
      // lse is [batch, heads, queries] in either layout.
      Placement sums = new Shard(d == 0 ? 0 : 1);
      rows.add(new Sharding.Row(List.of(cut, sums), Collections.nCopies(3, cut)));
    }
    return rows;
  }

  /** The gradient, q, k, v, the result and lse. */
  private static List<Sharding.Row> attentionBackward(Sharding.Call call) {
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d : new int[] {0, heads(call)}) {
      Placement cut = new Shard(d);
      List<Placement> in = new ArrayList<>(Collections.nCopies(5, cut));
      in.add(new Shard(d == 0 ? 0 : 1));
      rows.add(new Sharding.Row(Collections.nCopies(3, cut), in));
    }
    return rows;
  }
}
