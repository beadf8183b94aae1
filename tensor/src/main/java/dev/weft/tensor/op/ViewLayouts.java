package dev.weft.tensor.op;

import dev.weft.tensor.Shapes;
import org.jspecify.annotations.Nullable;

/** Shapes and strides of views. Stateless. */
final class ViewLayouts {
  private ViewLayouts() {}

  /**
   * Strides that show the same elements in another shape, or null where there are none. Dimensions
   * of the old shape that lie evenly spaced form runs, which the new shape must not straddle.
   */
  static long @Nullable [] viewStrides(long[] shape, long[] strides, long[] to) {
    if (Shapes.numel(shape) == 0 || Shapes.isContiguous(shape, strides)) {
      return Shapes.contiguousStrides(to);
    }
    long[] out = new long[to.length];
    int t = to.length - 1;
    long runSize = 1;
    long runStep = strides.length == 0 ? 1 : strides[strides.length - 1];
    long taken = 1;
    for (int d = shape.length - 1; d >= 0; d--) {
      runSize *= shape[d];
      boolean ends = d == 0 || (shape[d - 1] != 1 && strides[d - 1] != runSize * runStep);
      if (!ends) {
        continue;
      }
      while (t >= 0 && (taken < runSize || to[t] == 1)) {
        out[t] = taken * runStep;
        taken *= to[t];
        t--;
      }
      if (taken != runSize) {
        return null;
      }
      if (d > 0) {
        runStep = strides[d - 1];
        runSize = 1;
        taken = 1;
      }
    }
    return t == -1 ? out : null;
  }

  /** The values but for one position. */
  static long[] without(long[] values, int at) {
    long[] out = new long[values.length - 1];
    System.arraycopy(values, 0, out, 0, at);
    System.arraycopy(values, at + 1, out, at, out.length - at);
    return out;
  }

  /** The values with another before a position. */
  static long[] with(long[] values, int at, long value) {
    long[] out = new long[values.length + 1];
    System.arraycopy(values, 0, out, 0, at);
    out[at] = value;
    System.arraycopy(values, at, out, at + 1, values.length - at);
    return out;
  }
}
