package dev.weft.dtensor;

import dev.weft.tensor.Shapes;
import dev.weft.tensor.op.Attrs;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Reductions. Attributes begin with the reduced dimensions and whether they stay; a dimension that
 * is kept may be cut, and cutting a reduced one leaves a reduction outstanding where there is one
 * that fits.
 */
final class ReductionRules {
  private ReductionRules() {}

  static void addTo(Map<String, Sharding.Rule> rules) {
    rules.put("sum", call -> reduce(call, Partial.SUM, true));
    rules.put("mean", ReductionRules::mean);
    rules.put("amax", call -> reduce(call, new Partial(Partial.Op.MAX), false));
    rules.put("amin", call -> reduce(call, new Partial(Partial.Op.MIN), false));
    rules.put("prod", call -> reduce(call, new Partial(Partial.Op.PRODUCT), false));
    for (String op :
        List.of("argmax", "argmin", "all", "any", "var", "std", "vector_norm", "logsumexp")) {
      rules.put(op, call -> reduce(call, null, false));
    }
    for (String op : List.of("max", "min")) {
      rules.put(op, ReductionRules::withIndices);
    }
    rules.put("cumsum", call -> ViewRules.keepingAll(call, call.attrs().intAt(0)));
    rules.put("sum_to_size", new SumToSize());
    rules.put("slice_backward", new SliceBackward());
    rules.put("contract_leading", ReductionRules::contractLeading);
  }

  private static boolean[] reduced(Sharding.Call call) {
    int n = call.ndim(0);
    boolean[] gone = new boolean[n];
    for (int d : Shapes.dims(call.attrs().intsAt(0), n)) {
      gone[d] = true;
    }
    return gone;
  }

  /**
   * Rows of a reduction.
   *
   * @param outstanding what cutting a reduced dimension leaves, or null where it must be whole
   * @param linear whether outstanding sums pass through
   */
  private static List<Sharding.Row> reduce(
      Sharding.Call call,
      @org.jspecify.annotations.Nullable Placement outstanding,
      boolean linear) {
    boolean[] gone = reduced(call);
    boolean keep = call.attrs().boolAt(1);
    List<Sharding.Row> rows = new ArrayList<>();
    int at = 0;
    for (int d = 0; d < gone.length; d++) {
      if (gone[d]) {
        if (outstanding != null) {
          rows.add(Sharding.Row.of(outstanding, new Shard(d)));
        }
      } else {
        rows.add(Sharding.Row.of(new Shard(keep ? d : at), new Shard(d)));
        at++;
      }
    }
    if (linear) {
      for (Placement p : PointwiseRules.linear()) {
        rows.add(Sharding.Row.of(p, p));
      }
    }
    return rows;
  }

  /** Local means average to the mean where all parts are of one size. */
  private static List<Sharding.Row> mean(Sharding.Call call) {
    List<Sharding.Row> rows = reduce(call, null, true);
    boolean[] gone = reduced(call);
    DTensorSpec spec = call.inputs().get(0);
    for (int d = 0; d < gone.length; d++) {
      long cuts = 1;
      for (int m = 0; m < spec.mesh().ndim(); m++) {
        cuts *= spec.placements().get(m).isShard(d) ? spec.mesh().size(m) : 1;
      }
      if (gone[d] && cuts > 1 && call.shape(0)[d] % cuts == 0) {
        rows.add(Sharding.Row.of(new Partial(Partial.Op.AVG), new Shard(d)));
      }
    }
    return rows;
  }

  private static List<Sharding.Row> withIndices(Sharding.Call call) {
    int n = call.ndim(0);
    int dim = Shapes.dim(call.attrs().intsAt(0)[0], n);
    boolean keep = call.attrs().boolAt(1);
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d = 0; d < n; d++) {
      if (d != dim) {
        Placement out = new Shard(keep || d < dim ? d : d - 1);
        rows.add(new Sharding.Row(List.of(out, out), List.of(new Shard(d))));
      }
    }
    return rows;
  }

  /** Sums over what broadcasting had added. Attributes: the shape. */
  private static final class SumToSize implements Sharding.Rule {
    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      long[] from = call.shape(0);
      long[] to = call.outputs()[0].shape();
      List<Sharding.Row> rows = new ArrayList<>();
      for (int d = 0; d < from.length; d++) {
        int own = d - (from.length - to.length);
        boolean summed = own < 0 || (to[own] == 1 && from[d] != 1);
        rows.add(Sharding.Row.of(summed ? Partial.SUM : new Shard(own), new Shard(d)));
      }
      for (Placement p : PointwiseRules.linear()) {
        rows.add(Sharding.Row.of(p, p));
      }
      return rows;
    }

    @Override
    public Attrs localAttrs(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs) {
      return call.attrs().with(0, outputs.get(0).localShape());
    }
  }

  /** A gradient put back into zeros. Attributes: the shape, the dimension, the range. */
  private static final class SliceBackward implements Sharding.Rule {
    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      int dim = Shapes.dim(call.attrs().intAt(1), call.outputs()[0].shape().length);
      int n = call.ndim(0);
      boolean selected = n < call.outputs()[0].shape().length;
      List<Sharding.Row> rows = new ArrayList<>();
      for (int d = 0; d < n; d++) {
        int to = selected && d >= dim ? d + 1 : d;
        if (to != dim) {
          rows.add(Sharding.Row.of(new Shard(to), new Shard(d)));
        }
      }
      for (Placement p : PointwiseRules.linear()) {
        rows.add(Sharding.Row.of(p, p));
      }
      return rows;
    }

    @Override
    public Attrs localAttrs(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs) {
      return call.attrs().with(0, outputs.get(0).localShape());
    }
  }

  /** a[..., m] and b[..., n] to [m, n], summed over what leads. */
  private static List<Sharding.Row> contractLeading(Sharding.Call call) {
    int lead = call.ndim(0) - 1;
    int[] a = new int[lead + 1];
    int[] b = new int[lead + 1];
    for (int i = 0; i < lead; i++) {
      a[i] = i;
      b[i] = i;
    }
    a[lead] = lead;
    b[lead] = lead + 1;
    return Einsum.rows(List.of(a, b), List.of(), new int[] {lead, lead + 1});
  }
}
