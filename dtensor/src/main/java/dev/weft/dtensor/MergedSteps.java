package dev.weft.dtensor;

import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Shapes;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Consecutive steps of one kind over several mesh dimensions as one collective, where a group that
 * spans them is at hand: a flattened mesh, for which users ask on purpose, or the whole world,
 * where that moves no more bytes. Stateless.
 */
final class MergedSteps {
  private MergedSteps() {}

  static Plan of(Plan plan, DTensorSpec spec) {
    if (plan.steps().size() < 2) {
      return plan;
    }
    List<Placement> now = new ArrayList<>(spec.placements());
    List<Plan.Step> out = new ArrayList<>();
    List<Plan.Step> steps = plan.steps();
    for (int i = 0; i < steps.size(); ) {
      int end = run(steps, i);
      Plan.Step merged = null;
      while (end - i > 1 && merged == null) {
        merged = merge(steps.subList(i, end), spec, now);
        if (merged == null) {
          end--;
        }
      }
      if (merged == null) {
        out.add(steps.get(i));
      } else {
        if (merged.from().equals(Partial.SUM)) {
          out.addAll(asSums(steps.subList(i, end)));
        }
        out.add(merged);
      }
      for (int k = i; k < end; k++) {
        now.set(steps.get(k).meshDim(), steps.get(k).to());
      }
      i = end;
    }
    return new Plan(List.copyOf(out));
  }

  /** The end of the run of mergeable steps that starts at one. */
  private static int run(List<Plan.Step> steps, int start) {
    Plan.Step first = steps.get(start);
    int end = start + 1;
    boolean kind =
        first.action() == Plan.Action.ALL_REDUCE
            || (first.action() == Plan.Action.ALL_GATHER && first.from() instanceof Shard)
            || (first.action() == Plan.Action.REDUCE_SCATTER && first.to() instanceof Shard);
    while (kind
        && end < steps.size()
        && steps.get(end).action() == first.action()
        && sameOrLinear(steps.get(end).from(), first.from())
        && steps.get(end).to().equals(first.to())) {
      end++;
    }
    return end;
  }

  private static boolean sameOrLinear(Placement a, Placement b) {
    return a.equals(b)
        || (a instanceof Partial p
            && b instanceof Partial q
            && p.op().isLinear()
            && q.op().isLinear());
  }

  /** Averages become sums of what is divided by the number of ranks. */
  private static List<Plan.Step> asSums(List<Plan.Step> steps) {
    List<Plan.Step> out = new ArrayList<>();
    for (Plan.Step s : steps) {
      if (!s.from().equals(Partial.SUM)) {
        out.add(new Plan.Step(s.meshDims(), s.from(), Partial.SUM, Plan.Action.SPLIT_VALUE, 0));
      }
    }
    return out;
  }

  private static Plan.@org.jspecify.annotations.Nullable Step merge(
      List<Plan.Step> steps, DTensorSpec spec, List<Placement> now) {
    DeviceMesh mesh = spec.mesh();
    List<Integer> dims = new ArrayList<>(steps.stream().map(Plan.Step::meshDim).toList());
    Collections.sort(dims);
    int[] array = dims.stream().mapToInt(Integer::intValue).toArray();
    if (!mesh.containsThisRank() || mesh.merged(array) == null) {
      return null;
    }
    Plan.Step first = steps.get(0);
    boolean mixed = steps.stream().anyMatch(s -> !s.from().equals(first.from()));
    if (mixed && !spec.dtype().isFloatingPoint()) {
      return null;
    }
    int[] sizes = dims.stream().mapToInt(mesh::size).toArray();
    List<Placement> without = new ArrayList<>(now);
    dims.forEach(m -> without.set(m, Replicate.INSTANCE));
    long[] whole = Layout.localShape(spec.shape(), mesh.shape(), without, new int[mesh.ndim()]);
    int n = 1;
    for (int s : sizes) {
      n *= s;
    }
    Placement cut = first.from().isShard() ? first.from() : first.to();
    if (cut.isShard()) {
      Cuts cuts = new Cuts(Collections.nCopies(sizes.length, cut), sizes);
      long size = whole[cut.shardDim()];
      if (first.action() == Plan.Action.REDUCE_SCATTER && !cuts.isEven(size)) {
        return null;
      }
      whole[cut.shardDim()] = cuts.longest(size) * n;
    }
    long bytes = Shapes.numel(whole) * spec.dtype().byteSize() * (n - 1) / n;
    bytes = first.action() == Plan.Action.ALL_REDUCE ? 2 * bytes : bytes;
    long apart = steps.stream().mapToLong(Plan.Step::bytes).sum();
    return bytes > apart && !mesh.isFlattened(array)
        ? null
        : new Plan.Step(
            List.copyOf(dims),
            mixed ? Partial.SUM : first.from(),
            first.to(),
            first.action(),
            bytes);
  }
}
