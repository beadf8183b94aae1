package dev.weft.dtensor;

import static dev.weft.dtensor.FollowRules.WHOLE;

import dev.weft.tensor.Shapes;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Dispatcher;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Reductions. Attributes begin with the reduced dimensions and whether they stay; a dimension that
 * is kept may be cut, and cutting a reduced one leaves a reduction outstanding where there is one
 * that fits.
 */
final class ReductionRules {
  private static final Partial MAX = new Partial(Partial.Op.MAX);
  private static final Partial MIN = new Partial(Partial.Op.MIN);
  private static final Partial PRODUCT = new Partial(Partial.Op.PRODUCT);
  private static final Partial AVG = new Partial(Partial.Op.AVG);

  private ReductionRules() {}

  static void addTo(Map<String, Sharding.Rule> rules) {
    rules.put("sum", following(ReductionRules::sum));
    rules.put("mean", following(ReductionRules::mean));
    rules.put("amax", new Extremum(MAX));
    rules.put("amin", new Extremum(MIN));
    rules.put("prod", following(call -> reduce(call, PRODUCT, Set.of(PRODUCT))));
    rules.put("all", following(call -> reduce(call, MIN, Set.of(MIN))));
    rules.put("any", following(call -> reduce(call, MAX, Set.of(MAX))));
    rules.put("vector_norm", new Norm());
    for (String op : List.of("var", "std", "logsumexp", "max", "min")) {
      rules.put(op, FollowRules.settling(ReductionRules::whole));
    }
    rules.put("argmax", new ArgExtremumRule(true));
    rules.put("argmin", new ArgExtremumRule(false));
    for (String op : List.of("cumsum", "sort", "topk")) {
      rules.put(
          op, FollowRules.settling(call -> FollowRules.but(call.ndim(0), call.attrs().intAt(0))));
    }
    for (String op : List.of("equal", "allclose")) {
      rules.put(op, ReductionRules::comparison);
    }
    rules.put("prod_backward", following(ReductionRules::prodBackward));
    rules.put("sum_to_size", new SumToSize());
    rules.put("contract_leading", FollowRules.full(ReductionRules::contractLeading));
  }

  private static Sharding.Rule following(Sharding.Rule rule) {
    return FollowRules.following(rule);
  }

  static boolean[] reduced(Sharding.Call call) {
    int n = call.ndim(0);
    boolean[] gone = new boolean[n];
    for (int d : Shapes.dims(call.attrs().intsAt(0), n)) {
      if (n > 0) {
        gone[d] = true;
      }
    }
    return gone;
  }

  /** Where dimensions are in the result; reduced ones are needed whole. */
  private static int[] whole(Sharding.Call call) {
    boolean[] gone = reduced(call);
    boolean keep = call.attrs().boolAt(1);
    int[] map = new int[gone.length];
    int at = 0;
    for (int d = 0; d < gone.length; d++) {
      map[d] = gone[d] ? WHOLE : keep ? d : at;
      at += gone[d] ? 0 : 1;
    }
    return map;
  }

  /** All cuts of the input that are there, with where they are in the result. */
  static List<Sharding.Row> reduce(
      Sharding.Call call, @Nullable Placement outstanding, Set<? extends Placement> passing) {
    int[] map = whole(call);
    List<Sharding.Row> rows = new ArrayList<>();
    for (Placement p : Set.copyOf(call.inputs().get(0).placements())) {
      if (p.isShard()) {
        int at = map[p.shardDim()];
        if (at != WHOLE) {
          rows.add(Sharding.Row.of(FollowRules.at(p, at), p));
        } else if (outstanding != null) {
          rows.add(Sharding.Row.of(outstanding, p));
        }
      }
    }
    for (Placement p : passing) {
      rows.add(Sharding.Row.of(p, p));
    }
    return rows;
  }

  static long resultBytes(Sharding.Call call) {
    return Shapes.numel(call.outputs()[0].shape()) * call.outputs()[0].dtype().byteSize();
  }

  /**
   * Local means average to the mean where all parts are of one size. The mean of a sum that is
   * outstanding is the sum of means, which is reduced at once: it is smaller than its input.
   */
  private static List<Sharding.Row> mean(Sharding.Call call) {
    List<Sharding.Row> rows = reduce(call, null, Set.of());
    boolean[] gone = reduced(call);
    DTensorSpec spec = call.inputs().get(0);
    for (int d = 0; d < gone.length; d++) {
      long cuts = 1;
      for (int m = 0; m < spec.mesh().ndim(); m++) {
        cuts *= spec.placements().get(m).isShard(d) ? spec.mesh().size(m) : 1;
      }
      if (gone[d] && cuts > 1 && call.shape(0)[d] % cuts == 0) {
        for (Placement p : Set.copyOf(spec.placements())) {
          if (p.isShard(d) && (p instanceof Shard || evenPieces((StridedShard) p, call, cuts))) {
            rows.add(Sharding.Row.of(AVG, p));
          }
        }
      }
    }
    rows.add(Sharding.Row.of(AVG, AVG));
    rows.add(Sharding.Row.of(Partial.SUM, Partial.SUM).reduced(resultBytes(call)));
    return rows;
  }

  private static List<Sharding.Row> sum(Sharding.Call call) {
    List<Sharding.Row> rows = reduce(call, Partial.SUM, Set.of(Partial.SUM));
    rows.add(Sharding.Row.of(AVG, AVG).reduced(resultBytes(call)));
    return rows;
  }

  private static boolean evenPieces(StridedShard s, Sharding.Call call, long cuts) {
    return call.shape(0)[s.dim()] % (s.pieces() * cuts) == 0;
  }

  /** Any common cut; then all ranks must agree. */
  private static List<Sharding.Row> comparison(Sharding.Call call) {
    List<Sharding.Row> rows = new ArrayList<>();
    Sharding.Call wide = call;
    if (call.op().name().equals("allclose") || call.ndim(0) > 0) {
      long[] shape = Shapes.broadcast(call.shape(0), call.shape(1));
      wide =
          new Sharding.Call(
              call.op(),
              call.attrs(),
              call.inputs(),
              dev.weft.tensor.TensorSpec.one(shape, call.outputs()[0].dtype()));
    }
    for (Sharding.Row r : PointwiseRules.cuts(wide)) {
      rows.add(new Sharding.Row(List.of(MIN), r.inputs()));
    }
    return rows;
  }

  /** Gradient of the reduced shape, input. */
  private static List<Sharding.Row> prodBackward(Sharding.Call call) {
    int n = call.ndim(1);
    boolean[] gone = new boolean[n];
    for (int d : Shapes.dims(call.attrs().intsAt(0), n)) {
      gone[d] = true;
    }
    boolean keep = call.attrs().boolAt(1);
    List<Sharding.Row> rows = new ArrayList<>();
    int at = 0;
    for (int d = 0; d < n; d++) {
      if (!gone[d]) {
        rows.add(Sharding.Row.of(new Shard(d), new Shard(keep ? d : at++), new Shard(d)));
      }
    }
    return rows;
  }

  /** The largest or smallest; an empty part has none and counts as the worst there is. */
  private record Extremum(Partial outstanding) implements Sharding.Rule {
    @Override
    public boolean followsInputs() {
      return true;
    }

    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      return reduce(call, outstanding, Set.of(outstanding));
    }

    @Override
    public Sharding.LocalCall localCall(Sharding.Call call) {
      return (c, inputs, outputs, local) -> {
        if (local[0].numel() > 0) {
          return Dispatcher.callAll(c.op(), c.attrs(), local);
        }
        long[] shape = outputs.get(0).localShape();
        Tensor like = dev.weft.tensor.Tensors.empty(local[0].dtype(), local[0].device(), shape);
        return new Tensor[] {Creation.fullLike(like, worst(like, outstanding.equals(MAX)))};
      };
    }

    private static Number worst(Tensor t, boolean max) {
      if (t.dtype().isFloatingPoint()) {
        return max ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY;
      }
      return switch (t.dtype()) {
        case INT64 -> max ? Long.MIN_VALUE : Long.MAX_VALUE;
        case INT32 -> max ? Integer.MIN_VALUE : Integer.MAX_VALUE;
        case INT16 -> max ? Short.MIN_VALUE : Short.MAX_VALUE;
        case INT8 -> max ? Byte.MIN_VALUE : Byte.MAX_VALUE;
        case UINT8 -> max ? 0 : 255;
        default -> max ? 0 : 1;
      };
    }
  }

  /** p-norms of parts combine to the p-norm. Attribute 2: p. */
  private static final class Norm implements Sharding.Rule {
    @Override
    public boolean followsInputs() {
      return true;
    }

    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      double p = call.attrs().doubleAt(2);
      return reduce(call, p == 0 ? Partial.SUM : Partial.norm(p), Set.of());
    }

    @Override
    public Sharding.LocalCall localCall(Sharding.Call call) {
      return (c, inputs, outputs, local) -> {
        if (local[0].numel() > 0) {
          return Dispatcher.callAll(c.op(), c.attrs(), local);
        }
        long[] shape = outputs.get(0).localShape();
        Tensor like = dev.weft.tensor.Tensors.empty(local[0].dtype(), local[0].device(), shape);
        double none = c.attrs().doubleAt(2) < 0 ? Double.POSITIVE_INFINITY : 0;
        return new Tensor[] {Creation.fullLike(like, none)};
      };
    }
  }

  /** Sums over what broadcasting had added. Attributes: the shape. */
  private static final class SumToSize implements Sharding.Rule {
    @Override
    public boolean followsInputs() {
      return true;
    }

    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      int lead = call.ndim(0) - call.outputs()[0].shape().length;
      long[] from = call.shape(0);
      long[] to = call.outputs()[0].shape();
      List<Sharding.Row> rows = new ArrayList<>();
      for (Placement p : Set.copyOf(call.inputs().get(0).placements())) {
        if (p.isShard()) {
          int own = p.shardDim() - lead;
          boolean summed = own < 0 || (to[own] == 1 && from[p.shardDim()] != 1);
          rows.add(Sharding.Row.of(summed ? Partial.SUM : FollowRules.at(p, own), p));
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
