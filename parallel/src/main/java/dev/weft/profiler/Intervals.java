package dev.weft.profiler;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** Sets of times, as pieces that do not overlap, in order. Immutable. */
final class Intervals {
  private final List<double[]> pieces;

  private Intervals(List<double[]> pieces) {
    this.pieces = pieces;
  }

  /** What the pieces cover together. */
  static Intervals union(List<double[]> pieces) {
    List<double[]> sorted = new ArrayList<>(pieces);
    sorted.sort(Comparator.comparingDouble(p -> p[0]));
    List<double[]> out = new ArrayList<>();
    for (double[] p : sorted) {
      double[] last = out.isEmpty() ? null : out.get(out.size() - 1);
      if (last != null && p[0] <= last[1]) {
        last[1] = Math.max(last[1], p[1]);
      } else {
        out.add(p.clone());
      }
    }
    return new Intervals(out);
  }

  double length() {
    return pieces.stream().mapToDouble(p -> p[1] - p[0]).sum();
  }

  /** What both cover. */
  Intervals and(Intervals other) {
    List<double[]> out = new ArrayList<>();
    int k = 0;
    for (double[] p : pieces) {
      while (k < other.pieces.size() && other.pieces.get(k)[1] <= p[0]) {
        k++;
      }
      for (int j = k; j < other.pieces.size() && other.pieces.get(j)[0] < p[1]; j++) {
        double[] q = other.pieces.get(j);
        double from = Math.max(p[0], q[0]);
        double to = Math.min(p[1], q[1]);
        if (from < to) {
          out.add(new double[] {from, to});
        }
      }
    }
    return new Intervals(out);
  }
}
