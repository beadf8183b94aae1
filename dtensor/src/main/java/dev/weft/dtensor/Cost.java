package dev.weft.dtensor;

import java.util.List;

/**
 * What a redistribution is estimated to cost, in microseconds: a latency for each collective and
 * each hop, and the bytes over a bandwidth (the usual alpha-beta model). Only the order of such
 * costs matters.
 */
final class Cost {
  private static final double BASE = 6.6;
  private static final double HOP = 2.7;
  private static final double BYTES_PER_US = 12_500;

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
    double total = 0;
    int[] mesh = from.mesh().shape();
    for (Plan.Step s : Redistribution.plan(from, to).steps()) {
      int n = 1;
      for (int m : s.meshDims()) {
        n *= mesh[m];
      }
      if (!s.action().isCollective() || n == 1) {
        // Prefers leaving things as they are to cutting them for nothing.
        total += 1e-3;
        continue;
      }
      int hops = s.action() == Plan.Action.ALL_REDUCE ? 2 * (n - 1) : n - 1;
      total += BASE + hops * HOP + s.bytes() / BYTES_PER_US;
    }
    return total;
  }

  /** The cost of the collectives that a row issues by itself along one mesh dimension. */
  static double inside(Sharding.Row row, int n) {
    return n == 1
        ? 0
        : row.collectives() * (BASE + (n - 1) * HOP) + row.bytes() / BYTES_PER_US;
  }
}
