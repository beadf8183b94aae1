package dev.weft.dtensor;

import dev.weft.tensor.Shapes;
import dev.weft.tensor.TensorSpec;
import java.util.List;

/**
 * What a redistribution is estimated to cost, in microseconds: a latency for each collective and
 * each hop, and the bytes over a bandwidth (the usual alpha-beta model). Sizes are means over
 * ranks, without padding. Only the order of such costs matters.
 */
final class Cost {
  private static final double BASE = 6.6;
  private static final double HOP = 2.7;
  private static final double BYTES_PER_US = 12_500;
  // Packing and unpacking make an all-to-all dearer than an all-gather of the same size.
  private static final double PACKING = 1;
  // What a result still costs to be made whole counts for a part: it may never have to be.
  private static final double LATER = 0.2;

  // An outstanding sum moves twice as many bytes as a cut, and they have to be added up.
  private static final double SUMMED = 2.5;

  // What all this may count for at most, far less than one message: a product of large activations
  // would rather gather its weight, and be computed as a whole by every rank, otherwise.
  private static final double PREFERENCE = 1;

  private Cost() {}

  /** The cost of a plan, infinite where none exists. */
  static double of(DTensorSpec from, List<Placement> to) {
    for (int m = 0; m < to.size(); m++) {
      Placement a = from.placements().get(m);
      Placement b = to.get(m);
      if (b instanceof Partial p
          && !a.equals(b)
          && (!a.isReplicate() || p.op() == Partial.Op.PRODUCT || p.op() == Partial.Op.NORM)) {
        return Double.POSITIVE_INFINITY;
      }
    }
    int[] mesh = from.mesh().shape();
    double held = from.bytes();
    for (int m = 0; m < mesh.length; m++) {
      held /= from.placements().get(m).isShard() ? mesh[m] : 1;
    }
    double total = 0;
    for (Plan.Step s : Redistribution.plan(from, to).steps()) {
      int n = 1;
      for (int m : s.meshDims()) {
        n *= mesh[m];
      }
      if (!s.action().isCollective() || n == 1) {
        // Prefers leaving things as they are to cutting them for nothing.
        total += 1e-4;
        held /= s.action() == Plan.Action.CUT ? n : 1;
        continue;
      }
      int hops = n - 1;
      double full =
          s.action() == Plan.Action.ALL_GATHER || s.action() == Plan.Action.ALL_TO_ALL
              ? held * n
              : held;
      double moved = full * hops / n;
      if (s.action() == Plan.Action.ALL_REDUCE) {
        hops *= 2;
        moved *= 2;
      } else if (s.action() == Plan.Action.ALL_GATHER) {
        held *= n;
      } else if (s.action() == Plan.Action.REDUCE_SCATTER) {
        held /= n;
      } else {
        total += PACKING;
      }
      total += BASE + hops * HOP + moved / BYTES_PER_US;
    }
    return total;
  }

  /** The cost of the collectives that a row issues by itself along one mesh dimension. */
  static double inside(Sharding.Row row, int n) {
    return n == 1 ? 0 : row.collectives() * (BASE + (n - 1) * HOP) + row.bytes() / BYTES_PER_US;
  }

  /** The bytes between a result and its whole value, padding included, as time; no latencies. */
  static double toWhole(TensorSpec result, List<Placement> placements, int[] mesh) {
    double held = (double) Shapes.numel(result.shape()) * result.dtype().byteSize();
    double total = 0;
    for (int m = 0; m < mesh.length; m++) {
      double moved = held * (mesh[m] - 1) / mesh[m];
      Placement p = placements.get(m);
      if (p.isShard()) {
        long size = result.shape()[p.shardDim()];
        moved *= size == 0 ? 0 : (double) Layout.chunk(size, mesh[m]) * mesh[m] / size;
      }
      total += p.isPartial() ? SUMMED * moved : p.isShard() ? moved : 0;
    }
    return total * LATER / BYTES_PER_US;
  }

  /** What {@link #toWhole} counts for between ways that move about as much: more for more. */
  static double preference(double toWhole) {
    return PREFERENCE * toWhole / (PREFERENCE + toWhole);
  }
}
