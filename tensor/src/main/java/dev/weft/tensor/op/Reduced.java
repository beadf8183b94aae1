package dev.weft.tensor.op;

import dev.weft.tensor.Tensor;
import org.jspecify.annotations.Nullable;

/** Shapes of reductions and the way back; attributes are dims (int[]) and keepDim. Stateless. */
final class Reduced {
  private Reduced() {}

  static long[] reducedShape(String op, Tensor x, Attrs a) {
    int[] dims = Check.dims(op, a.intsAt(0), x.ndim());
    return reducedShape(x.shape(), dims, a.boolAt(1));
  }

  static long[] reducedShape(long[] shape, int[] dims, boolean keep) {
    boolean[] reduced = new boolean[shape.length];
    for (int d : dims) {
      reduced[d] = true;
    }
    long[] out = new long[keep ? shape.length : shape.length - dims.length];
    int n = 0;
    for (int i = 0; i < shape.length; i++) {
      if (!reduced[i]) {
        out[n++] = shape[i];
      } else if (keep) {
        out[n++] = 1;
      }
    }
    return out;
  }

  static int[] dims(Tensor x, Attrs a) {
    return Check.dims("dims", a.intsAt(0), x.ndim());
  }

  /** How many elements go into one result. */
  static long count(long[] shape, int[] dims) {
    long n = 1;
    for (int d : dims) {
      n *= shape[d];
    }
    return n;
  }

  /** A gradient of the reduced shape, with the reduced dimensions back and repeated. */
  static Tensor spread(Tensor g, long[] shape, int[] dims, boolean keep) {
    return Views.expand(keep ? g : restore(g, shape, dims), shape);
  }

  static Tensor restore(Tensor g, long[] shape, int[] dims) {
    return shape.length == g.ndim() ? g : Views.reshape(g, reducedShape(shape, dims, true));
  }

  static Attrs attrs(String op, Tensor x, int @Nullable [] dims, boolean keep) {
    return Attrs.of(Check.dims(op, dims, x.ndim()), keep);
  }
}
