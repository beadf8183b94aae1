package dev.weft.dtensor;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Predicate;

/**
 * Operators of one tensor that stay cut as their input is, but along dimensions that they need
 * whole, which are gathered. There is nothing to choose.
 */
final class FollowRules {
  /** A dimension that the operator needs whole. */
  static final int WHOLE = -1;

  private FollowRules() {}

  /** Where a dimension of the input is in the result, or {@link #WHOLE}. */
  interface Mapping {
    int[] of(Sharding.Call call);
  }

  /** A rule; outstanding reductions that do not pass are settled first. */
  static Sharding.Rule of(Mapping mapping, Predicate<Partial> passes) {
    return new Follow(mapping, passes);
  }

  /** A rule through which all outstanding reductions pass. */
  static Sharding.Rule passing(Mapping mapping) {
    return new Follow(mapping, p -> true);
  }

  /** A rule through which none passes. */
  static Sharding.Rule settling(Mapping mapping) {
    return new Follow(mapping, p -> false);
  }

  /** All dimensions stay where they are, but some are needed whole. */
  static int[] but(int ndim, int... whole) {
    int[] map = new int[ndim];
    for (int d = 0; d < ndim; d++) {
      map[d] = d;
    }
    for (int d : whole) {
      if (ndim > 0) {
        map[d < 0 ? d + ndim : d] = WHOLE;
      }
    }
    return map;
  }

  private record Follow(Mapping mapping, Predicate<Partial> passes) implements Sharding.Rule {
    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      return List.of();
    }

    @Override
    public Sharding.Layouts layouts(Sharding.Call call) {
      int[] to = mapping.of(call);
      List<Placement> in = new ArrayList<>();
      List<Placement> out = new ArrayList<>();
      for (Placement p : call.inputs().get(0).placements()) {
        Placement kept = p;
        Placement result = p;
        if (p.isShard()) {
          int at = to[p.shardDim()];
          kept = at == WHOLE ? Replicate.INSTANCE : p;
          result = at == WHOLE ? kept : at(p, at);
        } else if (p instanceof Partial q && !passes.test(q)) {
          kept = Replicate.INSTANCE;
          result = kept;
        }
        in.add(kept);
        out.add(result);
      }
      return new Sharding.Layouts(
          List.of(List.copyOf(in)), Collections.nCopies(call.outputs().length, List.copyOf(out)));
    }
  }

  /** The same cut of another dimension. */
  static Placement at(Placement p, int dim) {
    return p instanceof StridedShard s ? new StridedShard(dim, s.pieces()) : new Shard(dim);
  }

  /** A rule that keeps to the cuts that are there. */
  static Sharding.Rule following(Sharding.Rule rule) {
    return new Kept(rule, true, rule.needsFullParts());
  }

  /** A rule that leaves no rank with an empty part. */
  static Sharding.Rule full(Sharding.Rule rule) {
    return new Kept(rule, rule.followsInputs(), true);
  }

  private record Kept(Sharding.Rule rule, boolean followsInputs, boolean needsFullParts)
      implements Sharding.Rule {
    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      return rule.rows(call);
    }

    @Override
    public dev.weft.tensor.op.Attrs decisive(dev.weft.tensor.op.Attrs attrs) {
      return rule.decisive(attrs);
    }

    @Override
    public dev.weft.tensor.op.Attrs localAttrs(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs) {
      return rule.localAttrs(call, inputs, outputs);
    }

    @Override
    public Sharding.@org.jspecify.annotations.Nullable LocalCall localCall(Sharding.Call call) {
      return rule.localCall(call);
    }
  }
}
