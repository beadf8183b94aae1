package dev.weft.dtensor;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/**
 * Elementwise operators: any dimension of the result may be cut, inputs that broadcast along it are
 * whole. Linear ones let outstanding reductions through.
 */
final class PointwiseRules {
  private static final String[] NONLINEAR = {
    "pow",
    "maximum",
    "minimum",
    "add_scalar",
    "sub_scalar",
    "rsub_scalar",
    "rdiv_scalar",
    "pow_scalar",
    "addcmul",
    "addcdiv",
    "lerp",
    "lerp_scalar",
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
    "ceil",
    "round",
    "full_like",
    "zeros_like",
    "ones_like",
    "add_scalar_",
    "sub_scalar_",
    "fill_",
    "zero_",
    "clamp_",
    "addcmul_",
    "addcdiv_",
    "lerp_",
    "lerp_scalar_",
    "relu_",
    "tanh_",
    "sigmoid_",
    "exp_",
    "sqrt_",
    "pow_",
    "pow_scalar_",
    "adamw_",
    "sgd_"
  };

  /** Linear in all inputs together. */
  private static final String[] ADDITIVE = {"add", "sub", "add_", "sub_"};

  /** Linear in each input while the others are whole. */
  private static final String[] BILINEAR = {"mul", "mul_"};

  /** Linear in the first input. */
  private static final String[] LINEAR_FIRST = {
    "div",
    "div_",
    "mul_scalar",
    "div_scalar",
    "mul_scalar_",
    "div_scalar_",
    "relu_backward",
    "leaky_relu_backward",
    "sigmoid_backward",
    "tanh_backward",
    "silu_backward",
    "gelu_backward"
  };

  private PointwiseRules() {}

  static void addTo(Map<String, Sharding.Rule> rules) {
    for (String op : NONLINEAR) {
      rules.put(op, PointwiseRules::cuts);
    }
    for (String op : ADDITIVE) {
      rules.put(
          op,
          call -> {
            List<Sharding.Row> rows = cuts(call);
            for (Placement p : linear()) {
              rows.add(all(call, p));
            }
            return rows;
          });
    }
    for (String op : BILINEAR) {
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
        call -> {
          List<Sharding.Row> rows = cuts(call);
          for (Placement p : linear()) {
            rows.add(all(call, p));
          }
          rows.add(one(call, 0, new Partial(Partial.Op.MAX), new Partial(Partial.Op.MIN)));
          rows.add(one(call, 0, new Partial(Partial.Op.MIN), new Partial(Partial.Op.MAX)));
          return rows;
        });
    rules.put(
        "relu",
        call -> {
          List<Sharding.Row> rows = cuts(call);
          for (Partial.Op op : List.of(Partial.Op.MAX, Partial.Op.MIN)) {
            rows.add(all(call, new Partial(op)));
          }
          return rows;
        });
    rules.put("to", PointwiseRules::cast);
    rules.put("clone", PointwiseRules::cuts);
    rules.put("copy_", PointwiseRules::bilinearFree);
  }

  static List<Placement> linear() {
    return List.of(Partial.SUM, new Partial(Partial.Op.AVG));
  }

  /** Every dimension of the result cut. */
  static List<Sharding.Row> cuts(Sharding.Call call) {
    long[] out = call.outputs()[0].shape();
    List<Sharding.Row> rows = new ArrayList<>();
    for (int d = 0; d < out.length; d++) {
      List<Placement> inputs = new ArrayList<>();
      for (int i = 0; i < call.inputs().size(); i++) {
        int own = d - (out.length - call.ndim(i));
        boolean broadcast = own < 0 || (call.shape(i)[own] == 1 && out[d] != 1);
        inputs.add(broadcast ? Replicate.INSTANCE : new Shard(own));
      }
      rows.add(new Sharding.Row(List.of(new Shard(d)), inputs));
    }
    return rows;
  }

  private static Sharding.Row all(Sharding.Call call, Placement p) {
    return new Sharding.Row(List.of(p), Collections.nCopies(call.inputs().size(), p));
  }

  private static Sharding.Row one(Sharding.Call call, int input, Placement in, Placement out) {
    List<Placement> inputs =
        new ArrayList<>(Collections.nCopies(call.inputs().size(), Replicate.INSTANCE));
    inputs.set(input, in);
    return new Sharding.Row(List.of(out), inputs);
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
  private static List<Sharding.Row> bilinearFree(Sharding.Call call) {
    List<Sharding.Row> rows = cuts(call);
    for (Partial.Op op : Partial.Op.values()) {
      rows.add(all(call, new Partial(op)));
    }
    return rows;
  }

  /** Sums survive a cast between floating-point types. */
  private static List<Sharding.Row> cast(Sharding.Call call) {
    List<Sharding.Row> rows = cuts(call);
    if (call.inputs().get(0).dtype().isFloatingPoint()
        && call.outputs()[0].dtype().isFloatingPoint()) {
      for (Placement p : linear()) {
        rows.add(all(call, p));
      }
    }
    return rows;
  }
}
