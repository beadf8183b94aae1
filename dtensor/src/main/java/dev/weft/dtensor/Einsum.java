package dev.weft.dtensor;

import java.util.ArrayList;
import java.util.List;

/**
 * Rows of a multilinear operator from labels on its dimensions, as in Einstein's notation: a label
 * of the result may be cut wherever it occurs; cutting one that is summed over leaves a sum
 * outstanding; so does an outstanding sum on any one factor.
 */
final class Einsum {
  /** A dimension that cannot be cut. */
  static final int NONE = -1;

  private Einsum() {}

  /**
   * All rows.
   *
   * @param factors labels of the inputs that are multiplied
   * @param added labels of the inputs that are added to the product; they follow the factors
   * @param result labels of the result
   */
  static List<Sharding.Row> rows(List<int[]> factors, List<int[]> added, int[] result) {
    List<Sharding.Row> rows = new ArrayList<>();
    int highest = NONE;
    for (int[] labels : factors) {
      for (int label : labels) {
        highest = Math.max(highest, label);
      }
    }
    for (int label = 0; label <= highest; label++) {
      boolean summed = position(result, label) < 0;
      List<Placement> inputs = new ArrayList<>();
      for (int[] labels : factors) {
        inputs.add(cut(labels, label));
      }
      for (int[] labels : added) {
        inputs.add(summed ? Partial.SUM : cut(labels, label));
      }
      Placement out = summed ? Partial.SUM : new Shard(position(result, label));
      rows.add(new Sharding.Row(List.of(out), inputs));
    }
    for (Placement p : PointwiseRules.linear()) {
      for (int f = 0; f < factors.size(); f++) {
        List<Placement> inputs = new ArrayList<>();
        for (int i = 0; i < factors.size(); i++) {
          inputs.add(i == f ? p : Replicate.INSTANCE);
        }
        for (int i = 0; i < added.size(); i++) {
          inputs.add(p);
        }
        rows.add(new Sharding.Row(List.of(p), inputs));
      }
    }
    return rows;
  }

  private static Placement cut(int[] labels, int label) {
    int at = position(labels, label);
    return at < 0 ? Replicate.INSTANCE : new Shard(at);
  }

  private static int position(int[] labels, int label) {
    for (int i = 0; i < labels.length; i++) {
      if (labels[i] == label) {
        return i;
      }
    }
    return -1;
  }
}
