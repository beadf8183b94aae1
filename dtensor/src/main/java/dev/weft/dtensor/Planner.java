package dev.weft.dtensor;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import dev.weft.tensor.DType;
import dev.weft.tensor.Shapes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Finds the steps of a redistribution: the fewest bytes among the plans that have no more
 * collectives than the straightforward order (inner to outer, then outer to inner) needs. Sizes are
 * those of the first coordinate, so that all ranks decide alike. Thread-safe.
 */
final class Planner {
  private static final Cache<Key, Plan> PLANS =
      CacheBuilder.newBuilder().maximumSize(10_000).build();

  private record Key(
      List<Integer> mesh,
      List<Long> shape,
      DType dtype,
      List<Placement> from,
      List<Placement> to) {}

  private final int[] mesh;
  private final long[] shape;
  private final int elementBytes;
  private final List<Placement> target;
  private final Set<Placement> alphabet = new LinkedHashSet<>();

  private Planner(int[] mesh, long[] shape, DType dtype, List<Placement> from, List<Placement> to) {
    this.mesh = mesh;
    this.shape = shape;
    this.elementBytes = dtype.byteSize();
    this.target = to;
    alphabet.add(Replicate.INSTANCE);
    for (List<Placement> list : List.of(from, to)) {
      for (Placement p : list) {
        if (p.isShard()) {
          alphabet.add(p);
        }
      }
    }
  }

  /**
   * The plan from one placement list to another.
   *
   * @throws IllegalArgumentException where no redistribution exists
   */
  static Plan plan(
      int[] mesh, long[] shape, DType dtype, List<Placement> from, List<Placement> to) {
    if (from.equals(to)) {
      return new Plan(List.of());
    }
    Plan direct = direct(mesh, shape, dtype, from, to);
    if (direct != null) {
      return direct;
    }
    Key key = new Key(boxed(mesh), boxed(shape), dtype, from, to);
    Plan plan = PLANS.getIfPresent(key);
    if (plan == null) {
      check(from, to);
      plan = new Planner(mesh, shape, dtype, from, to).search(from);
      PLANS.put(key, plan);
    }
    return plan;
  }

  /**
   * The plan where just one mesh dimension changes and none inside it cuts the same tensor
   * dimensions: one step, or for a sum that would be padded a lot an all-reduce and a cut. Null
   * where the search must decide.
   */
  private static @Nullable Plan direct(
      int[] mesh, long[] shape, DType dtype, List<Placement> from, List<Placement> to) {
    int changed = -1;
    for (int m = 0; m < mesh.length; m++) {
      if (!from.get(m).equals(to.get(m))) {
        if (changed >= 0) {
          return null;
        }
        changed = m;
      }
    }
    Placement a = from.get(changed);
    Placement b = to.get(changed);
    if (b.isPartial() || (a.isShard() && b.isShard(a.shardDim()))) {
      return null;
    }
    for (int m = changed + 1; m < mesh.length; m++) {
      Placement inner = from.get(m);
      if (inner.isShard() && (a.isShard(inner.shardDim()) || b.isShard(inner.shardDim()))) {
        return null;
      }
    }
    checkMixture(from);
    Planner planner = new Planner(mesh, shape, dtype, from, to);
    Plan.Step step = planner.step(from, changed, a, b);
    if (step.action() == Plan.Action.REDUCE_SCATTER) {
      Plan.Step reduce = planner.step(from, changed, a, Replicate.INSTANCE);
      if (reduce.bytes() < step.bytes()) {
        List<Placement> reduced = replace(from, changed, Replicate.INSTANCE);
        return new Plan(List.of(reduce, planner.step(reduced, changed, Replicate.INSTANCE, b)));
      }
    }
    return new Plan(List.of(step));
  }

  private static List<Integer> boxed(int[] a) {
    return Arrays.stream(a).boxed().toList();
  }

  private static List<Long> boxed(long[] a) {
    return Arrays.stream(a).boxed().toList();
  }

  private static void check(List<Placement> from, List<Placement> to) {
    checkMixture(from);
    checkMixture(to);
    for (int m = 0; m < from.size(); m++) {
      Placement a = from.get(m);
      Placement b = to.get(m);
      if (!(b instanceof Partial p) || a.equals(b)) {
        continue;
      }
      if (a.isShard() || a.isPartial()) {
        throw new IllegalArgumentException(
            "redistribute: " + a + " to " + b + " on mesh dimension " + m + " is not defined");
      }
      if (p.op() == Partial.Op.PRODUCT || p.op() == Partial.Op.NORM) {
        throw new IllegalArgumentException(
            "redistribute: R to " + p + " on mesh dimension " + m + " is not defined");
      }
    }
  }

  /** Sums and averages commute; other reductions do not mix. */
  static void checkMixture(List<Placement> placements) {
    Partial seen = null;
    for (Placement p : placements) {
      if (p instanceof Partial q) {
        if (seen != null && !seen.mixesWith(q)) {
          throw new IllegalArgumentException(
              "placements " + placements + " mix reductions that do not commute");
        }
        seen = q;
      }
    }
  }

  private record Reached(long bytes, @Nullable Reached before, Plan.@Nullable Step step) {}

  private Plan search(List<Placement> from) {
    int bound = straightforward(from);
    // The cheapest way to each state with exactly k collectives, for growing k.
    Map<List<Placement>, Reached> layer = new HashMap<>();
    layer.put(from, new Reached(0, null, null));
    Reached best = null;
    for (int k = 0; k <= bound; k++) {
      closeUnderLocalSteps(layer);
      Reached here = layer.get(target);
      if (here != null && (best == null || here.bytes < best.bytes)) {
        best = here;
      }
      Map<List<Placement>, Reached> next = new HashMap<>();
      for (Map.Entry<List<Placement>, Reached> e : layer.entrySet()) {
        for (Plan.Step s : steps(e.getKey())) {
          if (s.action().isCollective() && mesh[s.meshDim()] > 1) {
            relax(next, e.getKey(), e.getValue(), s);
          }
        }
      }
      layer = next;
    }
    if (best == null) {
      throw new IllegalArgumentException(
          "redistribute: there is no way from " + from + " to " + target);
    }
    List<Plan.Step> steps = new ArrayList<>();
    for (Reached r = best; r != null && r.step != null; r = r.before) {
      steps.add(0, r.step);
    }
    return new Plan(List.copyOf(steps));
  }

  private static boolean relax(
      Map<List<Placement>, Reached> map, List<Placement> state, Reached at, Plan.Step step) {
    List<Placement> to = replace(state, step.meshDim(), step.to());
    long bytes = at.bytes + step.bytes();
    Reached known = map.get(to);
    if (known != null && known.bytes <= bytes) {
      return false;
    }
    map.put(to, new Reached(bytes, at, step));
    return true;
  }

  private void closeUnderLocalSteps(Map<List<Placement>, Reached> layer) {
    boolean changed = true;
    while (changed) {
      changed = false;
      for (List<Placement> state : List.copyOf(layer.keySet())) {
        for (Plan.Step s : steps(state)) {
          if (!s.action().isCollective() || mesh[s.meshDim()] == 1) {
            Reached at = layer.get(state);
            changed |= at != null && relax(layer, state, at, s);
          }
        }
      }
    }
  }

  private List<Plan.Step> steps(List<Placement> state) {
    List<Plan.Step> out = new ArrayList<>();
    for (int m = mesh.length - 1; m >= 0; m--) {
      Placement now = state.get(m);
      if (now.isShard() && shardedLater(state, m, now.shardDim())) {
        continue; // an inner mesh dimension cuts the same tensor dimension: it goes first
      }
      for (Placement next : alphabet) {
        if (next.equals(now)
            || (next.isShard() && next.shardDim() == now.shardDim())
            || (next.isShard() && shardedLater(state, m, next.shardDim()))) {
          continue;
        }
        out.add(step(state, m, now, next));
      }
      if (now.isReplicate() && target.get(m).isPartial()) {
        out.add(step(state, m, now, target.get(m)));
      }
    }
    return out;
  }

  private boolean shardedLater(List<Placement> state, int m, int dim) {
    for (int j = m + 1; j < mesh.length; j++) {
      if (state.get(j).isShard(dim)) {
        return true;
      }
    }
    return false;
  }

  private Plan.Step step(List<Placement> state, int m, Placement from, Placement to) {
    Plan.Action action;
    if (from.isPartial()) {
      action = to.isReplicate() ? Plan.Action.ALL_REDUCE : Plan.Action.REDUCE_SCATTER;
    } else if (from.isShard()) {
      action = to.isReplicate() ? Plan.Action.ALL_GATHER : Plan.Action.ALL_TO_ALL;
    } else {
      action = to.isShard() ? Plan.Action.CUT : Plan.Action.SPLIT_VALUE;
    }
    int n = mesh[m];
    if (!action.isCollective() || n == 1) {
      return new Plan.Step(List.of(m), from, to, action, 0);
    }
    long[] whole = Layout.localShapeWithout(shape, mesh, state, new int[mesh.length], m);
    for (Placement p : List.of(from, to)) {
      if (p.isShard() && action != Plan.Action.ALL_TO_ALL) {
        int d = p.shardDim();
        whole[d] = Layout.length(p, whole[d], n, 0) * n; // padded
      }
    }
    long bytes = Shapes.numel(whole) * elementBytes * (n - 1) / n;
    return new Plan.Step(
        List.of(m), from, to, action, action == Plan.Action.ALL_REDUCE ? 2 * bytes : bytes);
  }

  private static List<Placement> replace(List<Placement> list, int i, Placement p) {
    List<Placement> copy = new ArrayList<>(list);
    copy.set(i, p);
    return List.copyOf(copy);
  }

  /** The collectives of the order that first undoes what is in the way, from the inside. */
  private int straightforward(List<Placement> from) {
    List<Placement> now = new ArrayList<>(from);
    int collectives = 0;
    for (int m = mesh.length - 1; m >= 0; m--) {
      Placement to = target.get(m);
      if (to.isShard() && !sameCutsBefore(now, m, to.shardDim())) {
        to = Replicate.INSTANCE;
      }
      collectives += cost(now, m, to);
    }
    for (int m = 0; m < mesh.length; m++) {
      collectives += cost(now, m, target.get(m));
    }
    return collectives;
  }

  private boolean sameCutsBefore(List<Placement> now, int m, int dim) {
    for (int i = 0; i < m; i++) {
      if (now.get(i).isShard(dim) != target.get(i).isShard(dim)
          || (now.get(i).isShard(dim) && !now.get(i).equals(target.get(i)))) {
        return false;
      }
    }
    return true;
  }

  private int cost(List<Placement> now, int m, Placement to) {
    Placement before = now.set(m, to);
    return before.equals(to) || before.isReplicate() || mesh[m] == 1 ? 0 : 1;
  }
}
