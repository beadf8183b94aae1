package dev.weft.tensor.cpu;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;

/**
 * Walks the elements of a strided tensor in row-major order and moves chunks of them from or to
 * Java arrays. Not thread-safe.
 *
 * <p>Dimensions that follow each other in memory are merged first, so a contiguous tensor is one
 * run; a broadcast dimension is one of stride 0.
 */
final class Cursor {
  private final DType dtype;
  private final int rank;
  // Merged dimensions, outermost first; steps in bytes.
  private final long[] sizes;
  private final long[] steps;
  private final long[] index;
  private long address;

  /** A cursor over a whole tensor. */
  Cursor(StridedTensor t) {
    this(t.dtype(), t.dataAddress(), t.shape(), t.strides());
  }

  /** A cursor over a tensor broadcast to a shape. */
  Cursor(StridedTensor t, long[] shape) {
    this(
        t.dtype(),
        t.dataAddress(),
        shape,
        t.shape() == shape ? t.strides() : Layouts.broadcast(t.shape(), t.strides(), shape));
  }

  /** A cursor over a layout; strides in elements. */
  Cursor(DType dtype, long address, long[] shape, long[] strides) {
    this.dtype = dtype;
    this.address = address;
    int width = dtype.byteSize();
    int n = shape.length;
    long[] s = new long[Math.max(n, 1)];
    long[] t = new long[Math.max(n, 1)];
    // Filled from the end, innermost dimension last.
    int first = s.length;
    for (int i = n - 1; i >= 0; i--) {
      if (shape[i] == 1) {
        continue;
      }
      long step = strides[i] * width;
      if (first < s.length && step == t[first] * s[first]) {
        s[first] *= shape[i];
      } else {
        first--;
        s[first] = shape[i];
        t[first] = step;
      }
    }
    if (first == s.length) {
      first--;
      s[first] = 1;
      t[first] = width;
    }
    this.rank = s.length - first;
    if (first > 0) {
      System.arraycopy(s, first, s, 0, rank);
      System.arraycopy(t, first, t, 0, rank);
    }
    this.sizes = s;
    this.steps = t;
    this.index = new long[rank];
  }

  /** Reads the next {@code n} elements. */
  void read(float[] to, int at, int n) {
    int inner = rank - 1;
    while (n > 0) {
      int run = (int) Math.min(n, sizes[inner] - index[inner]);
      Stage.read(dtype, address, steps[inner], to, at, run);
      advance(run);
      at += run;
      n -= run;
    }
  }

  /** Reads the next {@code n} elements. */
  void read(double[] to, int at, int n) {
    int inner = rank - 1;
    while (n > 0) {
      int run = (int) Math.min(n, sizes[inner] - index[inner]);
      Stage.read(dtype, address, steps[inner], to, at, run);
      advance(run);
      at += run;
      n -= run;
    }
  }

  /** Reads the next {@code n} elements. */
  void read(long[] to, int at, int n) {
    int inner = rank - 1;
    while (n > 0) {
      int run = (int) Math.min(n, sizes[inner] - index[inner]);
      Stage.read(dtype, address, steps[inner], to, at, run);
      advance(run);
      at += run;
      n -= run;
    }
  }

  /** Writes the next {@code n} elements. */
  void write(float[] from, int at, int n) {
    int inner = rank - 1;
    while (n > 0) {
      int run = (int) Math.min(n, sizes[inner] - index[inner]);
      Stage.write(dtype, address, steps[inner], from, at, run);
      advance(run);
      at += run;
      n -= run;
    }
  }

  /** Writes the next {@code n} elements. */
  void write(double[] from, int at, int n) {
    int inner = rank - 1;
    while (n > 0) {
      int run = (int) Math.min(n, sizes[inner] - index[inner]);
      Stage.write(dtype, address, steps[inner], from, at, run);
      advance(run);
      at += run;
      n -= run;
    }
  }

  /** Writes the next {@code n} elements. */
  void write(long[] from, int at, int n) {
    int inner = rank - 1;
    while (n > 0) {
      int run = (int) Math.min(n, sizes[inner] - index[inner]);
      Stage.write(dtype, address, steps[inner], from, at, run);
      advance(run);
      at += run;
      n -= run;
    }
  }

  /** The address of the current element. */
  long address() {
    return address;
  }

  /** How many elements follow each other, {@link #step} bytes apart, from the current one on. */
  long run() {
    return sizes[rank - 1] - index[rank - 1];
  }

  /** Bytes between neighbours of the current run. */
  long step() {
    return steps[rank - 1];
  }

  /** Skips elements of the current run. */
  void advance(long run) {
    int d = rank - 1;
    index[d] += run;
    address += run * steps[d];
    while (index[d] == sizes[d] && d > 0) {
      address -= sizes[d] * steps[d];
      index[d] = 0;
      d--;
      index[d]++;
      address += steps[d];
    }
  }
}
