package dev.weft.tensor.cpu;

/** Arithmetic of strides for kernels. Stateless; shapes have been checked by the operator. */
final class Layouts {
  private Layouts() {}

  /** Strides of a tensor seen in a larger shape; repeated dimensions get stride 0. */
  static long[] broadcast(long[] shape, long[] strides, long[] to) {
    int lead = to.length - shape.length;
    long[] out = new long[to.length];
    for (int i = lead; i < to.length; i++) {
      out[i] = shape[i - lead] == 1 && to[i] != 1 ? 0 : strides[i - lead];
    }
    return out;
  }

  /** Picks entries by position. */
  static long[] pick(long[] values, int[] positions) {
    long[] out = new long[positions.length];
    for (int i = 0; i < positions.length; i++) {
      out[i] = values[positions[i]];
    }
    return out;
  }

  /** The dimensions that are not in a list, in order. */
  static int[] others(int[] dims, int ndim) {
    boolean[] in = new boolean[ndim];
    for (int d : dims) {
      in[d] = true;
    }
    int[] out = new int[ndim - dims.length];
    int n = 0;
    for (int i = 0; i < ndim; i++) {
      if (!in[i]) {
        out[n++] = i;
      }
    }
    return out;
  }

  /** One list after the other. */
  static int[] concat(int[] a, int[] b) {
    int[] out = java.util.Arrays.copyOf(a, a.length + b.length);
    System.arraycopy(b, 0, out, a.length, b.length);
    return out;
  }

  /** A permutation that moves one dimension to the end. */
  static int[] last(int dim, int ndim) {
    return concat(others(new int[] {dim}, ndim), new int[] {dim});
  }
}
