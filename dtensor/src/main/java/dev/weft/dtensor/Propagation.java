package dev.weft.dtensor;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Op;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Chooses how a call runs: among all combinations of the rule's rows over the mesh dimensions, the
 * one whose inputs cost least to bring into place. Decisions are cached by operator, arguments and
 * input layouts, for each rank and mesh by itself. Thread-safe; all ranks decide alike.
 */
final class Propagation {
  // Raised when a rule is registered, so that older decisions are not found any more.
  private static volatile int epoch;

  private Propagation() {}

  private record Key(Op op, Attrs attrs, List<DTensorSpec> inputs, int epoch) {}

  /** The decisions of one rank on one mesh. */
  private static final class Decisions {
    final Cache<Key, Decision> cache = CacheBuilder.newBuilder().maximumSize(20_000).build();
  }

  /**
   * What was chosen.
   *
   * @param inputs how the inputs must lie
   * @param outputs how the results lie when the local call is done
   * @param settled how they are handed out
   * @param attrs arguments of the local call
   */
  record Decision(
      List<DTensorSpec> inputs,
      List<DTensorSpec> outputs,
      List<List<Placement>> settled,
      Attrs attrs,
      Sharding.@Nullable LocalCall localCall,
      Sharding.Call call) {}

  static Decision decide(Op op, Attrs attrs, List<DTensorSpec> inputs, Tensor[] tensors) {
    Sharding.Rule rule = Rules.get(op);
    Key key = new Key(op, rule == null ? attrs : rule.decisive(attrs), inputs, epoch);
    Cache<Key, Decision> cache =
        inputs.get(0).mesh().attachment(Decisions.class, Decisions::new).cache;
    Decision known = cache.getIfPresent(key);
    if (known == null) {
      known = choose(op, attrs, inputs, tensors);
      cache.put(key, known);
    }
    return known;
  }

  @SuppressWarnings("NonAtomicVolatileUpdate") // any change will do
  static void forget() {
    epoch++;
  }

  private static Decision choose(Op op, Attrs attrs, List<DTensorSpec> inputs, Tensor[] tensors) {
    Sharding.Rule rule = Rules.find(op, inputs);
    TensorSpec[] outputs = Rules.outputs(op, attrs, tensors);
    Sharding.Call call = new Sharding.Call(op, attrs, inputs, outputs);
    Sharding.Layouts fixed = rule.layouts(call);
    if (fixed != null) {
      return decision(call, rule, fixed.inputs(), fixed.outputs(), fixed.outputs());
    }
    List<Sharding.Row> rows = new ArrayList<>(rule.rows(call));
    if (rule.followsInputs()) {
      rows.removeIf(r -> !isPresent(call, r));
    }
    List<Placement> allIn = replicated(inputs.size());
    Sharding.Row replicate = new Sharding.Row(replicated(outputs.length), allIn);
    if (!rows.contains(replicate)) {
      rows.add(replicate);
    }
    Combination best = new Search(call, rows, rule, op.form() == Op.Form.IN_PLACE).best();
    List<List<Placement>> in = new ArrayList<>();
    for (int i = 0; i < inputs.size(); i++) {
      in.add(best.input(i));
    }
    List<List<Placement>> out = new ArrayList<>();
    for (int o = 0; o < outputs.length; o++) {
      out.add(best.output(o));
    }
    List<List<Placement>> produced = new ArrayList<>();
    for (int o = 0; o < outputs.length; o++) {
      produced.add(best.produced(o));
    }
    return decision(call, rule, in, out, produced);
  }

  /** Whether some input is cut, or the row cuts nothing. */
  private static boolean isPresent(Sharding.Call call, Sharding.Row row) {
    return row.inputs().stream().noneMatch(Placement::isShard)
        || call.inputs().stream()
            .anyMatch(i -> i.placements().stream().anyMatch(Placement::isShard));
  }

  private static Decision decision(
      Sharding.Call call,
      Sharding.Rule rule,
      List<List<Placement>> inputs,
      List<List<Placement>> outputs,
      List<List<Placement>> produced) {
    List<DTensorSpec> in = new ArrayList<>();
    for (int i = 0; i < inputs.size(); i++) {
      in.add(call.inputs().get(i).with(inputs.get(i)));
    }
    DeviceMesh mesh = call.inputs().get(0).mesh();
    List<DTensorSpec> out = new ArrayList<>();
    for (int o = 0; o < outputs.size(); o++) {
      TensorSpec spec = call.outputs()[o];
      out.add(DTensorSpec.of(mesh, produced.get(o), spec.shape(), spec.dtype()));
    }
    return new Decision(
        List.copyOf(in),
        List.copyOf(out),
        List.copyOf(outputs),
        rule.localAttrs(call, in, out),
        rule.localCall(call),
        call);
  }

  private static List<Placement> replicated(int n) {
    return java.util.Collections.nCopies(n, Replicate.INSTANCE);
  }

  /** One row for each mesh dimension. */
  private record Combination(List<Sharding.Row> rows) {
    List<Placement> input(int i) {
      return rows.stream().map(r -> r.inputs().get(i)).toList();
    }

    /** Where one mesh dimension's share is reduced at once, the others' is, too. */
    List<Placement> output(int o) {
      boolean reduces = rows.stream().anyMatch(r -> r.produced() != r.outputs());
      return rows.stream()
          .map(r -> r.outputs().get(o))
          .map(p -> reduces && p.isPartial() ? Replicate.INSTANCE : p)
          .toList();
    }

    List<Placement> produced(int o) {
      return rows.stream().map(r -> r.produced().get(o)).toList();
    }
  }

  private static final class Search {
    private final Sharding.Call call;
    private final DeviceMesh mesh;
    private final int[] meshShape;
    private final List<List<Sharding.Row>> choices = new ArrayList<>();
    private @Nullable Combination best;
    private double bestCost = Double.POSITIVE_INFINITY;

    private final boolean full;
    // For each input, what its placements cost that were looked at already.
    private final List<Map<List<Placement>, Double>> moves = new ArrayList<>();
    private final List<Function<List<Placement>, Double>> moveOf = new ArrayList<>();

    Search(Sharding.Call call, List<Sharding.Row> rows, Sharding.Rule rule, boolean inPlace) {
      this.call = call;
      this.mesh = call.inputs().get(0).mesh();
      this.full = rule.needsFullParts();
      for (DTensorSpec input : call.inputs()) {
        moves.add(new HashMap<>());
        moveOf.add(wanted -> move(input, wanted));
      }
      boolean stays = rule.followsInputs() && call.inputs().size() == 1;
      this.meshShape = mesh.shape();
      for (int m = 0; m < meshShape.length; m++) {
        List<Sharding.Row> fitting = new ArrayList<>();
        for (Sharding.Row row : rows) {
          boolean keeps =
              !inPlace
                  || (row.outputs().get(0).equals(call.inputs().get(0).placements().get(m))
                      && row.inputs().get(0).equals(row.outputs().get(0)));
          Placement first = row.inputs().get(0);
          boolean moves =
              stays && first.isShard() && !first.equals(call.inputs().get(0).placements().get(m));
          if (keeps && !moves) {
            fitting.add(row);
          }
        }
        if (fitting.isEmpty()) {
          throw new IllegalArgumentException(
              call.op()
                  + ": an operator in place keeps its target's placements, "
                  + call.inputs().get(0).placements()
                  + ", and cannot compute with them");
        }
        choices.add(fitting);
      }
    }

    Combination best() {
      extend(new ArrayList<>());
      if (best == null) {
        throw new IllegalArgumentException(
            call.op() + ": no sharding is possible for inputs " + call.inputs());
      }
      return best;
    }

    private void extend(List<Sharding.Row> chosen) {
      int m = chosen.size();
      if (m == meshShape.length) {
        Combination c = new Combination(List.copyOf(chosen));
        double cost = cost(c);
        if (cost < bestCost) {
          bestCost = cost;
          best = c;
        }
        return;
      }
      for (Sharding.Row row : choices.get(m)) {
        chosen.add(row);
        extend(chosen);
        chosen.remove(m);
      }
    }

    private double cost(Combination c) {
      double total = 0;
      double later = 0;
      for (int m = 0; m < meshShape.length; m++) {
        total += Cost.inside(c.rows().get(m), meshShape[m]);
      }
      // What is cheap to know comes first, so that most combinations are given up early.
      for (int o = 0; o < call.outputs().length; o++) {
        if (!mixes(c.produced(o))) {
          return Double.POSITIVE_INFINITY;
        }
        later += Cost.toWhole(call.outputs()[o], c.output(o), meshShape);
      }
      total += Cost.preference(later);
      for (int i = 0; i < call.inputs().size(); i++) {
        if (total >= bestCost) {
          return Double.POSITIVE_INFINITY;
        }
        total += moves.get(i).computeIfAbsent(c.input(i), moveOf.get(i));
      }
      return total;
    }

    /** What it costs to bring an input into place, infinite where it cannot be. */
    private double move(DTensorSpec now, List<Placement> wanted) {
      if (!fits(now.shape(), wanted, now.placements())) {
        return Double.POSITIVE_INFINITY;
      }
      return wanted.equals(now.placements()) ? 0 : Cost.of(now, wanted);
    }

    /** A dimension is cut only where every rank gets something, or where it is cut already. */
    private boolean fits(long[] shape, List<Placement> wanted, List<Placement> now) {
      if (!mixes(wanted)) {
        return false;
      }
      if (wanted.equals(now) && !full) {
        return true;
      }
      for (int d = 0; d < shape.length; d++) {
        long cuts = 1;
        boolean as = true;
        for (int m = 0; m < meshShape.length; m++) {
          if (wanted.get(m).isShard(d)) {
            cuts *= mesh.size(m);
          }
          as &= wanted.get(m).isShard(d) == now.get(m).isShard(d);
        }
        if ((full || !as) && cuts > Math.max(shape[d], 1)) {
          return false;
        }
      }
      return true;
    }

    private static boolean mixes(List<Placement> placements) {
      Partial seen = null;
      for (Placement p : placements) {
        if (p instanceof Partial q) {
          if (seen != null && !seen.mixesWith(q)) {
            return false;
          }
          seen = q;
        }
      }
      return true;
    }
  }
}
