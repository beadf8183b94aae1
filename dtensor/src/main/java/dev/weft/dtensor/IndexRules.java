package dev.weft.dtensor;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Reads and sums at computed positions, and triangles of matrices. */
final class IndexRules {
  private IndexRules() {}

  static void addTo(Map<String, Sharding.Rule> rules) {
    rules.put("gather", IndexRules::gather);
    rules.put("scatter_add", FollowRules.following(IndexRules::scatterAdd));
    rules.put("gather_backward", FollowRules.following(new GatherBackward()));
    rules.put("index_select", FollowRules.following(IndexRules::indexSelect));
    rules.put("index_select_backward", FollowRules.following(new IndexSelectBackward()));
    rules.put("embedding", new EmbeddingRules.Forward());
    rules.put("embedding_backward", new EmbeddingRules.Backward());
    for (String op : List.of("tril", "triu")) {
      rules.put(op, FollowRules.settling(call -> FollowRules.but(call.ndim(0), -1, -2)));
    }
  }

  /** x, index: both cut alike but along the dimension; or the index alone where x is whole. */
  private static List<Sharding.Row> gather(Sharding.Call call) {
    int dim = call.attrs().intAt(0);
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d = 0; d < call.ndim(0); d++) {
      Placement p = new Shard(d);
      if (d == dim) {
        rows.add(Sharding.Row.of(p, Replicate.INSTANCE, p));
      } else if (call.shape(0)[d] == call.shape(1)[d]) {
        rows.add(Sharding.Row.of(p, p, p));
      }
    }
    return rows;
  }

  /** x, index, source. */
  private static List<Sharding.Row> scatterAdd(Sharding.Call call) {
    int dim = call.attrs().intAt(0);
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d = 0; d < call.ndim(0); d++) {
      Placement p = new Shard(d);
      if (d != dim && call.shape(0)[d] == call.shape(1)[d]) {
        rows.add(new Sharding.Row(List.of(p), Collections.nCopies(3, p)));
      }
    }
    for (Placement p : PointwiseRules.linear()) {
      rows.add(Sharding.Row.of(p, p, Replicate.INSTANCE, p));
    }
    return rows;
  }

  /** Gradient, index; attributes: the input's shape, the dimension. */
  private static final class GatherBackward implements Sharding.Rule {
    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      int dim = call.attrs().intAt(1);
      long[] out = call.outputs()[0].shape();
      List<Sharding.Row> rows = new ArrayList<>();
      for (int d = 0; d < call.ndim(0); d++) {
        Placement p = new Shard(d);
        if (d == dim) {
          rows.add(Sharding.Row.of(Partial.SUM, p, p));
        } else if (call.shape(0)[d] == out[d]) {
          rows.add(Sharding.Row.of(p, p, p));
        }
      }
      for (Placement p : PointwiseRules.linear()) {
        rows.add(Sharding.Row.of(p, p, Replicate.INSTANCE));
      }
      return rows;
    }

    @Override
    public dev.weft.tensor.op.Attrs localAttrs(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs) {
      return call.attrs().with(0, outputs.get(0).localShape());
    }
  }

  /** x, index vector. */
  private static List<Sharding.Row> indexSelect(Sharding.Call call) {
    int dim = call.attrs().intAt(0);
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d = 0; d < call.ndim(0); d++) {
      if (d != dim) {
        rows.add(Sharding.Row.of(new Shard(d), new Shard(d), Replicate.INSTANCE));
      }
    }
    rows.add(Sharding.Row.of(new Shard(dim), Replicate.INSTANCE, new Shard(0)));
    for (Placement p : PointwiseRules.linear()) {
      rows.add(Sharding.Row.of(p, p, Replicate.INSTANCE));
    }
    return rows;
  }

  /** Gradient, index vector; attributes: the input's shape, the dimension. */
  private static final class IndexSelectBackward implements Sharding.Rule {
    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      int dim = call.attrs().intAt(1);
      List<Sharding.Row> rows = new ArrayList<>();
      for (int d = 0; d < call.ndim(0); d++) {
        if (d != dim) {
          rows.add(Sharding.Row.of(new Shard(d), new Shard(d), Replicate.INSTANCE));
        }
      }
      rows.add(Sharding.Row.of(Partial.SUM, new Shard(dim), new Shard(0)));
      for (Placement p : PointwiseRules.linear()) {
        rows.add(Sharding.Row.of(p, p, Replicate.INSTANCE));
      }
      return rows;
    }

    @Override
    public dev.weft.tensor.op.Attrs localAttrs(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs) {
      return call.attrs().with(0, outputs.get(0).localShape());
    }
  }
}
