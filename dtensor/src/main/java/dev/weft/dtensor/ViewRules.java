package dev.weft.dtensor;

import static dev.weft.dtensor.FollowRules.WHOLE;

import dev.weft.tensor.Shapes;
import dev.weft.tensor.op.Attrs;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Operators that rearrange dimensions. Outstanding reductions pass through all of them. A reshape
 * never communicates: where a cut has no counterpart in the new shape it is refused.
 */
final class ViewRules {
  private ViewRules() {}

  static void addTo(Map<String, Sharding.Rule> rules) {
    rules.put("permute", FollowRules.passing(call -> inverse(call.attrs().intsAt(0))));
    rules.put("transpose", FollowRules.passing(ViewRules::transpose));
    rules.put("reshape", new ReshapeRule());
    rules.put("view", new ReshapeRule());
    rules.put(
        "slice", FollowRules.passing(call -> FollowRules.but(call.ndim(0), call.attrs().intAt(0))));
    rules.put("whole_dim", FollowRules.passing(ViewRules::wholeDim));
    rules.put("slice_backward", new SliceBackward());
    rules.put("select", FollowRules.passing(ViewRules::select));
    rules.put("unsqueeze", FollowRules.passing(ViewRules::unsqueeze));
    rules.put("squeeze", new Squeeze());
    rules.put("expand", new Expand());
    rules.put(
        "flip", FollowRules.passing(call -> FollowRules.but(call.ndim(0), call.attrs().intsAt(0))));
    rules.put(
        "roll", FollowRules.passing(call -> FollowRules.but(call.ndim(0), call.attrs().intsAt(0))));
    rules.put("repeat", FollowRules.passing(ViewRules::repeat));
    rules.put("cat", FollowRules.following(ViewRules::cat));
    rules.put("stack", FollowRules.following(ViewRules::stack));
  }

  /** Where each dimension of the input goes when the result's dimension i is order[i]. */
  private static int[] inverse(int[] order) {
    int[] to = new int[order.length];
    for (int i = 0; i < order.length; i++) {
      to[Shapes.dim(order[i], order.length)] = i;
    }
    return to;
  }

  /** Attributes: the dimension, and whether a cut of it is refused. */
  private static int[] wholeDim(Sharding.Call call) {
    int dim = call.attrs().intAt(0);
    DTensorSpec input = call.inputs().get(0);
    if (call.attrs().boolAt(1) && input.placements().stream().anyMatch(p -> p.isShard(dim))) {
      throw new IllegalArgumentException(
          "unbind: dimension "
              + dim
              + " is cut over the mesh ("
              + input
              + "); redistribute it to R first");
    }
    return FollowRules.but(call.ndim(0), dim);
  }

  private static int[] transpose(Sharding.Call call) {
    int n = call.ndim(0);
    int[] to = FollowRules.but(n);
    if (n > 1) {
      int a = Shapes.dim(call.attrs().intAt(0), n);
      int b = Shapes.dim(call.attrs().intAt(1), n);
      to[a] = b;
      to[b] = a;
    }
    return to;
  }

  private static int[] select(Sharding.Call call) {
    int dim = Shapes.dim(call.attrs().intAt(0), call.ndim(0));
    int[] to = FollowRules.but(call.ndim(0), dim);
    for (int d = dim + 1; d < to.length; d++) {
      to[d] = d - 1;
    }
    return to;
  }

  private static int[] unsqueeze(Sharding.Call call) {
    int dim = Shapes.dim(call.attrs().intAt(0), call.ndim(0) + 1);
    int[] to = FollowRules.but(call.ndim(0));
    for (int d = dim; d < to.length; d++) {
      to[d] = d + 1;
    }
    return to;
  }

  /** Dimensions of size 1 go; one that is cut is refused. */
  private static int[] squeeze(Sharding.Call call) {
    boolean[] gone = new boolean[call.ndim(0)];
    for (int d : call.attrs().intsAt(0)) {
      gone[d] = call.shape(0)[d] == 1;
    }
    int[] to = new int[gone.length];
    int at = 0;
    for (int d = 0; d < gone.length; d++) {
      to[d] = gone[d] ? WHOLE : at++;
      for (Placement p : call.inputs().get(0).placements()) {
        if (gone[d] && p.isShard(d)) {
          throw new IllegalArgumentException(
              "squeeze: dimension "
                  + d
                  + " is cut over the mesh ("
                  + call.inputs().get(0)
                  + ") and would go; redistribute it to R first");
        }
      }
    }
    return to;
  }

  /** Attributes: the dimensions that may go; parts may be of size 1 where the whole is not. */
  private static final class Squeeze implements Sharding.Rule {
    private static final Sharding.Rule RULE = FollowRules.passing(ViewRules::squeeze);

    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      return List.of();
    }

    @Override
    public Sharding.@org.jspecify.annotations.Nullable Layouts layouts(Sharding.Call call) {
      return RULE.layouts(call);
    }

    @Override
    public Attrs localAttrs(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs) {
      int[] gone =
          Arrays.stream(call.attrs().intsAt(0)).filter(d -> call.shape(0)[d] == 1).toArray();
      return call.attrs().with(0, gone);
    }
  }

  private static int[] repeat(Sharding.Call call) {
    long[] repeats = call.attrs().longsAt(0);
    int lead = repeats.length - call.ndim(0);
    int[] to = new int[call.ndim(0)];
    for (int d = 0; d < to.length; d++) {
      to[d] = repeats[lead + d] == 1 ? lead + d : WHOLE;
    }
    return to;
  }

  /** Attributes: the new shape. */
  private static final class Expand implements Sharding.Rule {
    private static final Sharding.Rule RULE = FollowRules.passing(Expand::map);

    private static int[] map(Sharding.Call call) {
      long[] out = call.outputs()[0].shape();
      int lead = out.length - call.ndim(0);
      int[] to = new int[call.ndim(0)];
      for (int d = 0; d < to.length; d++) {
        to[d] = call.shape(0)[d] == out[lead + d] ? lead + d : WHOLE;
      }
      return to;
    }

    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      return List.of();
    }

    @Override
    public Sharding.@org.jspecify.annotations.Nullable Layouts layouts(Sharding.Call call) {
      return RULE.layouts(call);
    }

    @Override
    public Attrs localAttrs(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs) {
      return call.attrs().with(0, outputs.get(0).localShape());
    }
  }

  /** A gradient put back into zeros. Attributes: the shape, the dimension, the range. */
  private static final class SliceBackward implements Sharding.Rule {
    private static final Sharding.Rule RULE =
        FollowRules.of(
            call -> FollowRules.but(call.ndim(0), call.attrs().intAt(1)), p -> p.op().isLinear());

    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      return List.of();
    }

    @Override
    public Sharding.@org.jspecify.annotations.Nullable Layouts layouts(Sharding.Call call) {
      return RULE.layouts(call);
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
    return joined(call, dim, d -> d);
  }

  private static List<Sharding.Row> stack(Sharding.Call call) {
    int dim = call.attrs().intAt(0);
    return joined(call, WHOLE, d -> d < dim ? d : d + 1);
  }

  /** All inputs alike, cut as one of them is; any reduction that some input has passes. */
  private static List<Sharding.Row> joined(
      Sharding.Call call, int whole, java.util.function.IntUnaryOperator to) {
    List<Placement> present = new ArrayList<>();
    call.inputs().forEach(i -> present.addAll(i.placements()));
    List<Sharding.Row> rows = new ArrayList<>();
    for (Placement p : Set.copyOf(present)) {
      List<Placement> inputs = Collections.nCopies(call.inputs().size(), p);
      if (p.isPartial()) {
        rows.add(new Sharding.Row(List.of(p), inputs));
      } else if (p instanceof Shard && !p.isShard(whole)) {
        rows.add(new Sharding.Row(List.of(FollowRules.at(p, to.applyAsInt(p.shardDim()))), inputs));
      }
    }
    rows.sort(java.util.Comparator.comparing(r -> Arrays.toString(r.outputs().toArray())));
    return rows;
  }
}
