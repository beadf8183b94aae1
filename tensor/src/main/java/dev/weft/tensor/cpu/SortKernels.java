package dev.weft.tensor.cpu;

import dev.weft.tensor.StridedTensor;
import java.util.Arrays;
import java.util.Comparator;

/** Orders along a dimension. */
public final class SortKernels {
  private SortKernels() {}

  /**
   * The first elements of each slice in order, and their positions; equal elements keep their
   * order, NaN counts as largest. The outputs' size along the dimension says how many.
   */
  public static void sort(
      StridedTensor in, StridedTensor values, StridedTensor indices, int dim, boolean descending) {
    if (values.numel() == 0) {
      return;
    }
    int n = SoftmaxKernels.length(in, dim);
    int k = SoftmaxKernels.length(values, dim);
    long rows = in.numel() / n;
    Cursor from = SoftmaxKernels.rows(in, dim);
    Cursor toValues = SoftmaxKernels.rows(values, dim);
    Cursor toIndices = SoftmaxKernels.rows(indices, dim);
    boolean exact = Compute.of(in.dtype()) == Compute.LONG;
    long[] l = new long[n];
    double[] d = new double[n];
    long[] lOut = new long[n];
    double[] dOut = new double[n];
    long[] at = new long[n];
    Comparator<Integer> order =
        exact
            ? Comparator.comparingLong(i -> l[i])
            // Adding 0 makes -0 equal to 0.
            : Comparator.comparingDouble(i -> d[i] + 0.0);
    Integer[] positions = new Integer[n];
    for (long r = 0; r < rows; r++) {
      if (exact) {
        from.read(l, 0, n);
      } else {
        from.read(d, 0, n);
      }
      Arrays.setAll(positions, i -> i);
      Arrays.sort(positions, descending ? order.reversed() : order);
      for (int i = 0; i < k; i++) {
        at[i] = positions[i];
        lOut[i] = l[positions[i]];
        dOut[i] = d[positions[i]];
      }
      if (exact) {
        toValues.write(lOut, 0, k);
      } else {
        toValues.write(dOut, 0, k);
      }
      toIndices.write(at, 0, k);
    }
  }
}
