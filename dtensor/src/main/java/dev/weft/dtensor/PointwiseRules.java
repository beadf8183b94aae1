package dev.weft.dtensor;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Elementwise operators: the result is cut as some input is, and inputs that broadcast along that
 * dimension are whole. Which outstanding reductions pass is said for each; see {@code
 * docs/semantics/partial.md}.
 */
final class PointwiseRules {
  private static final String[] NONLINEAR = {
    "pow",
    "ceil",
    "round",
    "add_scalar",
    "sub_scalar",
    "rsub_scalar",
    "rdiv_scalar",
    "pow_scalar",
    "addcmul",
    "addcdiv",
    "lerp",
    "abs",
    "sign",
    "floor",
    "square",
    "exp",
    "log",
    "log1p",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "sin",
    "cos",
    "erf",
    "atan2",
    "clamp",
    "isnan",
    "tanh",
    "sigmoid",
    "gelu",
    "silu",
    "leaky_relu",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "eq_scalar",
    "ne_scalar",
    "lt_scalar",
    "le_scalar",
    "gt_scalar",
    "ge_scalar",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "where",
    "masked_fill",
    "clone",
    "add_scalar_",
    "sub_scalar_",
    "clamp_",
    "addcmul_",
    "addcdiv_",
    "relu_",
    "masked_fill_",
    // Linear in the gradient, but what comes next is a product, which would need it whole twice.
    "relu_backward",
    "leaky_relu_backward",
    "sigmoid_backward",
    "tanh_backward",
    "silu_backward",
    "gelu_backward"
  };

  /** Linear in the first input. */
  private static final String[] LINEAR_FIRST = {
    "div", "div_", "mul_scalar", "div_scalar", "mul_scalar_", "div_scalar_"
  };

  private static final Partial AVG = new Partial(Partial.Op.AVG);
  private static final Partial MAX = new Partial(Partial.Op.MAX);
  private static final Partial MIN = new Partial(Partial.Op.MIN);

  private PointwiseRules() {}

  static void addTo(Map<String, Sharding.Rule> rules) {
    rules.put("adamw_", new UpdateRule());
    for (String op : NONLINEAR) {
      rules.put(op, PointwiseRules::cuts);
    }
    for (String op : List.of("add", "add_", "lerp_scalar", "lerp_scalar_")) {
      rules.put(op, call -> sum(call, !op.startsWith("lerp"), false));
    }
    for (String op : List.of("sub", "sub_")) {
      rules.put(op, call -> sum(call, true, true));
    }
    for (String op : List.of("mul", "mul_")) {
      rules.put(op, PointwiseRules::bilinear);
    }
    for (String op : LINEAR_FIRST) {
      rules.put(
          op,
          call -> {
            List<Sharding.Row> rows = cuts(call);
            for (Placement p : linear()) {
              rows.add(one(call, 0, p, p));
            }
            return rows;
          });
    }
    rules.put(
        "neg",
        call -> passing(call, Map.of(Partial.SUM, Partial.SUM, AVG, AVG, MAX, MIN, MIN, MAX)));
    rules.put("relu", call -> passing(call, Map.of(MAX, MAX, MIN, MIN)));
    rules.put("maximum", call -> extremum(call, MAX));
    rules.put("minimum", call -> extremum(call, MIN));
    rules.put("to", PointwiseRules::cast);
    rules.put("copy_", PointwiseRules::copied);
    rules.put("zero_", PointwiseRules::kept);
    rules.put("full_like", new FillRules.Like());
    rules.put("fill_", new FillRules.InPlaceFill());
  }

  static List<Placement> linear() {
    return List.of(Partial.SUM, AVG);
  }

  /** Every dimension of the result, where some input is cut at all; strided cuts as they are. */
  static List<Sharding.Row> cuts(Sharding.Call call) {
    long[] out = call.outputs()[0].shape();
    Set<Placement> present = new LinkedHashSet<>();
    boolean cut = false;
    for (DTensorSpec input : call.inputs()) {
      int lead = out.length - input.shape().length;
      for (Placement p : input.placements()) {
        cut |= p.isShard();
        if (p instanceof StridedShard) {
          present.add(FollowRules.at(p, p.shardDim() + lead));
        }
      }
    }
    for (int d = 0; cut && d < out.length; d++) {
      present.add(new Shard(d));
    }
    List<Sharding.Row> rows = new ArrayList<>();
    for (Placement p : present) {
      List<Placement> inputs = new ArrayList<>();
      for (int i = 0; i < call.inputs().size(); i++) {
        int own = p.shardDim() - (out.length - call.ndim(i));
        boolean broadcast = own < 0 || (call.shape(i)[own] == 1 && out[p.shardDim()] != 1);
        inputs.add(broadcast ? Replicate.INSTANCE : FollowRules.at(p, own));
      }
      rows.add(new Sharding.Row(List.of(p), inputs));
    }
    return rows;
  }

  private static Sharding.Row all(Sharding.Call call, Placement in, Placement out) {
    return new Sharding.Row(List.of(out), Collections.nCopies(call.inputs().size(), in));
  }

  private static Sharding.Row one(Sharding.Call call, int input, Placement in, Placement out) {
    List<Placement> inputs =
        new ArrayList<>(Collections.nCopies(call.inputs().size(), Replicate.INSTANCE));
    inputs.set(input, in);
    return new Sharding.Row(List.of(out), inputs);
  }

  /** Reductions that pass where all inputs have them. */
  private static List<Sharding.Row> passing(
      Sharding.Call call, Map<? extends Placement, ? extends Placement> reductions) {
    List<Sharding.Row> rows = cuts(call);
    reductions.forEach((in, out) -> rows.add(all(call, in, out)));
    return rows;
  }

  /** The extremum of extrema; a whole input may be compared with each contribution. */
  private static List<Sharding.Row> extremum(Sharding.Call call, Partial p) {
    List<Sharding.Row> rows = passing(call, Map.of(p, p));
    for (int i = 0; i < call.inputs().size(); i++) {
      rows.add(one(call, i, p, p));
    }
    return rows;
  }

  /** A sum of two: linear in both together, and a shift of an average or an extremum. */
  private static List<Sharding.Row> sum(Sharding.Call call, boolean shifts, boolean minus) {
    List<Sharding.Row> rows = cuts(call);
    for (Placement p : linear()) {
      rows.add(all(call, p, p));
    }
    if (!shifts) {
      return rows;
    }
    boolean positive = !minus && isPositive(call);
    boolean negative = minus && isPositive(call);
    for (Partial p : List.of(AVG, MAX, MIN)) {
      rows.add(one(call, 0, p, p));
    }
    rows.add(one(call, 1, AVG, AVG));
    if (positive || negative) {
      rows.add(one(call, 1, MAX, positive ? MAX : MIN));
      rows.add(one(call, 1, MIN, positive ? MIN : MAX));
    }
    return rows;
  }

  private static boolean isPositive(Sharding.Call call) {
    return call.attrs().isNull(0) || call.attrs().doubleAt(0) > 0;
  }

  private static List<Sharding.Row> bilinear(Sharding.Call call) {
    List<Sharding.Row> rows = cuts(call);
    for (Placement p : linear()) {
      for (int i = 0; i < call.inputs().size(); i++) {
        rows.add(one(call, i, p, p));
      }
    }
    return rows;
  }

  /** The target takes over the source's values, whatever is outstanding on it. */
  private static List<Sharding.Row> copied(Sharding.Call call) {
    List<Sharding.Row> rows = kept(call);
    call.inputs().get(0).placements().stream()
        .filter(p -> p.equals(new Partial(Partial.Op.PRODUCT)))
        .forEach(p -> rows.add(all(call, p, p)));
    return rows;
  }

  /** All reductions that are outstanding on the first input stay so. */
  private static List<Sharding.Row> kept(Sharding.Call call) {
    List<Sharding.Row> rows = cuts(call);
    for (Placement p : new LinkedHashSet<>(call.inputs().get(0).placements())) {
      if (p.isPartial()) {
        rows.add(all(call, p, p));
      }
    }
    return rows;
  }

  /** Sums survive a cast between floating-point types. */
  private static List<Sharding.Row> cast(Sharding.Call call) {
    List<Sharding.Row> rows = cuts(call);
    if (call.inputs().get(0).dtype().isFloatingPoint()
        && call.outputs()[0].dtype().isFloatingPoint()) {
      for (Placement p : linear()) {
        rows.add(all(call, p, p));
      }
    }
    return rows;
  }
}
