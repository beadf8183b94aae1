package dev.weft.dtensor;

import dev.weft.tensor.Shapes;
import dev.weft.tensor.op.Attrs;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Operators that rearrange dimensions. Outstanding reductions pass through all of them. */
final class ViewRules {
  private ViewRules() {}

  static void addTo(Map<String, Sharding.Rule> rules) {
    rules.put("permute", call -> permute(call, call.attrs().intsAt(0)));
    rules.put("transpose", ViewRules::transpose);
    rules.put("reshape", new Reshape());
    rules.put("view", new Reshape());
    rules.put("slice", call -> keepingAll(call, call.attrs().intAt(0)));
    rules.put("select", ViewRules::select);
    rules.put("unsqueeze", ViewRules::unsqueeze);
    rules.put("squeeze", ViewRules::squeeze);
    rules.put("expand", new Expand());
    rules.put("cat", ViewRules::cat);
    rules.put("stack", ViewRules::stack);
  }

  /** Rows for outstanding reductions of one input. */
  private static List<Sharding.Row> withPartials(Sharding.Call call, List<Sharding.Row> rows) {
    for (Partial.Op op : Partial.Op.values()) {
      Placement p = new Partial(op);
      rows.add(new Sharding.Row(List.of(p), Collections.nCopies(call.inputs().size(), p)));
    }
    return rows;
  }

  private static List<Sharding.Row> permute(Sharding.Call call, int[] order) {
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d = 0; d < order.length; d++) {
      rows.add(Sharding.Row.of(new Shard(d), new Shard(Shapes.dim(order[d], order.length))));
    }
    return withPartials(call, rows);
  }

  private static List<Sharding.Row> transpose(Sharding.Call call) {
    int n = call.ndim(0);
    int[] order = new int[n];
    java.util.Arrays.setAll(order, i -> i);
    if (n > 1) {
      int a = Shapes.dim(call.attrs().intAt(0), n);
      int b = Shapes.dim(call.attrs().intAt(1), n);
      order[a] = b;
      order[b] = a;
    }
    return permute(call, order);
  }

  /** Same dimensions before and after; one of them must be whole. */
  static List<Sharding.Row> keepingAll(Sharding.Call call, int whole) {
    int n = call.ndim(0);
    int dim = Shapes.dim(whole, n);
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d = 0; d < n; d++) {
      if (d != dim) {
        rows.add(Sharding.Row.of(new Shard(d), new Shard(d)));
      }
    }
    return withPartials(call, rows);
  }

  private static List<Sharding.Row> select(Sharding.Call call) {
    int n = call.ndim(0);
    int dim = Shapes.dim(call.attrs().intAt(0), n);
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d = 0; d < n; d++) {
      if (d != dim) {
        rows.add(Sharding.Row.of(new Shard(d < dim ? d : d - 1), new Shard(d)));
      }
    }
    return withPartials(call, rows);
  }

  private static List<Sharding.Row> unsqueeze(Sharding.Call call) {
    int n = call.ndim(0);
    int dim = Shapes.dim(call.attrs().intAt(0), n + 1);
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d = 0; d < n; d++) {
      rows.add(Sharding.Row.of(new Shard(d < dim ? d : d + 1), new Shard(d)));
    }
    return withPartials(call, rows);
  }

  /** Dimensions that go are those of size 1 that the result lacks. */
  private static List<Sharding.Row> squeeze(Sharding.Call call) {
    return withPartials(call, mapped(call.shape(0), call.outputs()[0].shape(), call));
  }

  private static List<Sharding.Row> mapped(long[] from, long[] to, Sharding.Call call) {
    List<Sharding.Row> rows = new ArrayList<>();
    for (ViewGroups.Group g : ViewGroups.of(from, to)) {
      int d = g.from().get(0);
      int e = g.to().get(0);
      boolean same = g.from().size() == 1 && g.to().size() == 1;
      long cuts = cuts(call, d);
      if (same || (from[d] % cuts == 0 && to[e] % cuts == 0)) {
        rows.add(Sharding.Row.of(new Shard(e), new Shard(d)));
      }
    }
    if (from.length == to.length && Shapes.numel(from) != 0) {
      // A dimension of size 1 that stays where it is keeps its cut.
      for (int d = 0; d < from.length; d++) {
        if (from[d] == 1 && to[d] == 1) {
          rows.add(Sharding.Row.of(new Shard(d), new Shard(d)));
        }
      }
    }
    return rows;
  }

  /** Into how many parts a dimension of the first input is cut now, at least the whole mesh's. */
  private static long cuts(Sharding.Call call, int dim) {
    DTensorSpec spec = call.inputs().get(0);
    long cuts = 1;
    for (int m = 0; m < spec.mesh().ndim(); m++) {
      if (spec.placements().get(m).isShard(dim)) {
        cuts *= spec.mesh().size(m);
      }
    }
    return cuts == 1 ? spec.mesh().size() : cuts;
  }

  /** Attributes: the new shape. */
  private static final class Reshape implements Sharding.Rule {
    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      return withPartials(call, mapped(call.shape(0), call.outputs()[0].shape(), call));
    }

    @Override
    public Attrs localAttrs(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs) {
      return call.attrs().with(0, outputs.get(0).localShape());
    }
  }

  /** Attributes: the new shape. */
  private static final class Expand implements Sharding.Rule {
    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      return withPartials(call, PointwiseRules.cuts(call));
    }

    @Override
    public Attrs localAttrs(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs) {
      return call.attrs().with(0, outputs.get(0).localShape());
    }
  }

  private static List<Sharding.Row> cat(Sharding.Call call) {
    int n = call.outputs()[0].shape().length;
    int dim = Shapes.dim(call.attrs().intAt(0), n);
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d = 0; d < n; d++) {
      if (d != dim) {
        rows.add(
            new Sharding.Row(
                List.of(new Shard(d)), Collections.nCopies(call.inputs().size(), new Shard(d))));
      }
    }
    return withPartials(call, rows);
  }

  private static List<Sharding.Row> stack(Sharding.Call call) {
    int n = call.outputs()[0].shape().length;
    int dim = Shapes.dim(call.attrs().intAt(0), n);
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d = 0; d < n - 1; d++) {
      rows.add(
          new Sharding.Row(
              List.of(new Shard(d < dim ? d : d + 1)),
              Collections.nCopies(call.inputs().size(), new Shard(d))));
    }
    return withPartials(call, rows);
  }
}
