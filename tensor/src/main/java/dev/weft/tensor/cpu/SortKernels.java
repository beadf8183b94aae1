package dev.weft.tensor.cpu;

import dev.weft.tensor.StridedTensor;

/** Stable sorting along a dimension; NaN counts as the largest, as in PyTorch. */
public final class SortKernels {
  private SortKernels() {}

  /**
   * The first {@code k} of each row in order, with their positions.
   *
   * @param values as long as {@code k} along the dimension; like the positions
   */
  public static void sort(
      StridedTensor in,
      StridedTensor values,
      StridedTensor positions,
      int dim,
      boolean descending) {
    if (values.numel() == 0) {
      return;
    }
    int n = SoftmaxKernels.length(in, dim);
    int k = SoftmaxKernels.length(values, dim);
    long rows = in.numel() / n;
    Cursor from = SoftmaxKernels.rows(in, dim);
    Cursor to = SoftmaxKernels.rows(values, dim);
    Cursor index = SoftmaxKernels.rows(positions, dim);
    boolean integers = Compute.of(in.dtype()) == Compute.LONG;
    double[] x = new double[integers ? 0 : n];
    long[] y = new long[integers ? n : 0];
    double[] bestX = new double[integers ? 0 : k];
    long[] best = new long[k];
    int[] order = new int[n];
    int[] scratch = new int[n];
    for (long r = 0; r < rows; r++) {
      for (int i = 0; i < n; i++) {
        order[i] = i;
      }
      if (integers) {
        from.read(y, 0, n);
        mergeSort(order, scratch, 0, n, descending ? (a, b) -> y[b] > y[a] : (a, b) -> y[b] < y[a]);
        for (int i = 0; i < k; i++) {
          best[i] = y[order[i]];
        }
        to.write(best, 0, k);
      } else {
        from.read(x, 0, n);
        mergeSort(
            order,
            scratch,
            0,
            n,
            descending
                ? (a, b) -> Double.compare(x[b] + 0.0, x[a] + 0.0) > 0
                : (a, b) -> Double.compare(x[b] + 0.0, x[a] + 0.0) < 0);
        for (int i = 0; i < k; i++) {
          bestX[i] = x[order[i]];
        }
        to.write(bestX, 0, k);
      }
      for (int i = 0; i < k; i++) {
        best[i] = order[i];
      }
      index.write(best, 0, k);
    }
  }

  /** Whether the second of two positions must come first. */
  private interface Precedes {
    boolean test(int first, int second);
  }

  private static void mergeSort(int[] order, int[] scratch, int from, int to, Precedes wrong) {
    if (to - from < 2) {
      return;
    }
    int middle = (from + to) >>> 1;
    mergeSort(order, scratch, from, middle, wrong);
    mergeSort(order, scratch, middle, to, wrong);
    System.arraycopy(order, from, scratch, from, to - from);
    int a = from;
    int b = middle;
    for (int i = from; i < to; i++) {
      boolean second = a == middle || (b < to && wrong.test(scratch[a], scratch[b]));
      order[i] = second ? scratch[b++] : scratch[a++];
    }
  }
}
